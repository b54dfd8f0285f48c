#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/report_result.h"

namespace muster {

/// One load at its place in a sweep.
struct SweepSpot {
  double x = 0;
  std::optional<Estimate> throughput = {};   // prompts or requests a second
  std::optional<Estimate> latency_p99 = {};  // seconds, as the next two
  std::optional<Estimate> latency_p95 = {};
  std::optional<Estimate> latency_p50 = {};
  bool is_trusted = true;
};

/// Loads that differ in nothing but what is swept.
struct SweepLine {
  std::string name = {};  // "torch_dtype=bf16 device_ids=0,1"; text, empty: there is one
  std::vector<SweepSpot> spots = {};  // x ascending
};

/// What one pair of plots shows.
struct SweepLines {
  std::string axis = {};  // "batch_size", "clients", "rate"
  std::string unit = {};  // of the throughput: "prompts/s", "requests/s"
  std::vector<SweepLine> lines = {};
};

/// Prompts a second of a point of `bench run`, of which a request may have several; the interval is
/// that of the requests, scaled. nullopt: it was not measured, or the result is no point. Threads:
/// pure.
std::optional<Estimate> prompts_per_second(const ReportResult& result);

/// The number that the whole text is, from 0 to 1e15; nullopt: it is none. Threads: pure.
std::optional<double> number_of_setting(std::string_view text);

/// A setting of a point of `bench run`, "-" where it has none of this name. Threads: pure.
std::string_view setting_of(const ReportResult& result, const std::string& name);

/// The names in `config` of points that differ between them, in alphabetical order. Threads: pure.
std::vector<std::string> varying_settings(std::span<const ReportResult> results);

/// The sweeps within results: points of `bench run` against the first of batch_size, rate, clients,
/// sequence_length, max_new_tokens that has two numbers, a line for each combination of what else
/// differs; and the loads of other results against their clients or their rate, a line for each
/// result. A sweep has two places at least. Threads: pure.
std::vector<SweepLines> sweep_lines(std::span<const ReportResult> results);

}  // namespace muster
