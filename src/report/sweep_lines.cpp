// What was swept is read off the results themselves: a setting that differs between points is
// swept, and a number of clients or a rate stands in the name of a load.
#include "report/sweep_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>

#include "report/load_facts.h"

namespace muster {
namespace {

constexpr std::string_view kUnknown = "-";

using Lines = std::map<std::string, std::vector<SweepSpot>>;

// In order, without what has fewer than two places.
void add_sweep(std::vector<SweepLines>& sweeps, std::string_view axis, std::string_view unit,
               Lines lines) {
  SweepLines sweep{.axis = std::string(axis), .unit = std::string(unit)};
  std::set<double> places;
  for (auto& [name, spots] : lines) {
    std::ranges::stable_sort(spots, {}, &SweepSpot::x);
    for (const auto& spot : spots) places.insert(spot.x);
    sweep.lines.push_back({.name = name, .spots = std::move(spots)});
  }
  if (places.size() > 1) sweeps.push_back(std::move(sweep));
}

SweepSpot spot_of(const ReportResult& result, const ReportLoad& load, double x) {
  return {.x = x,
          .throughput = figure_of(load, "throughput"),
          .latency_p99 = figure_of(load, "latency_p99"),
          .latency_p95 = figure_of(load, "latency_p95"),
          .latency_p50 = figure_of(load, "latency_p50"),
          .is_trusted = is_to_be_trusted(warnings_of(result, load))};
}

SweepSpot point_spot(const ReportResult& result, double x) {
  auto spot = spot_of(result, result.loads.front(), x);
  spot.throughput = prompts_per_second(result);
  return spot;
}

bool is_point(const ReportResult& result) { return result.record && !result.loads.empty(); }

std::optional<std::string> swept_axis(std::span<const ReportResult> results,
                                      const std::vector<std::string>& varying) {
  constexpr std::array<std::string_view, 5> kAxes{"batch_size", "rate", "clients",
                                                  "sequence_length", "max_new_tokens"};
  for (const auto axis : kAxes) {
    const std::string name(axis);
    if (std::ranges::find(varying, name) == varying.end()) continue;
    std::set<double> numbers;
    for (const auto& result : results) {
      if (!is_point(result)) continue;
      if (const auto number = number_of_setting(setting_of(result, name))) numbers.insert(*number);
    }
    if (numbers.size() > 1) return name;
  }
  return std::nullopt;
}

void add_points(std::vector<SweepLines>& sweeps, std::span<const ReportResult> results) {
  const auto varying = varying_settings(results);
  const auto axis = swept_axis(results, varying);
  if (!axis) return;
  Lines lines;
  for (const auto& result : results) {
    if (!is_point(result)) continue;
    const auto x = number_of_setting(setting_of(result, *axis));
    if (!x) continue;
    std::string label;
    for (const auto& name : varying) {
      if (name == *axis) continue;
      label += fmt::format("{}{}={}", label.empty() ? "" : " ", name, setting_of(result, name));
    }
    lines[label].push_back(point_spot(result, *x));
  }
  add_sweep(sweeps, *axis, "prompts/s", std::move(lines));
}

// "8 clients" has 8; nullopt: the load is no closed loop.
std::optional<double> clients_of(std::string_view load) {
  const auto blank = load.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto word = load.substr(blank + 1);
  return word == "client" || word == "clients" ? number_of_setting(load.substr(0, blank))
                                               : std::nullopt;
}

// "poisson 100/s" has 100; nullopt: the rate rises, or the load is none of a rate.
std::optional<double> rate_of(std::string_view load) {
  const auto blank = load.find(' ');
  if (blank == std::string_view::npos || !load.ends_with("/s")) return std::nullopt;
  const auto number = load.substr(blank + 1);
  return number_of_setting(number.substr(0, number.size() - 2));
}

template <typename Place>
void add_loads(std::vector<SweepLines>& sweeps, std::span<const ReportResult> results,
               std::string_view axis, Place place_of) {
  Lines lines;
  for (const auto& result : results) {
    if (result.record) continue;
    for (const auto& load : result.loads) {
      const std::optional<double> x = place_of(load.name);
      if (x) lines[result.name].push_back(spot_of(result, load, *x));
    }
  }
  add_sweep(sweeps, axis, "requests/s", std::move(lines));
}

}  // namespace

std::optional<double> number_of_setting(std::string_view text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  constexpr double kMost = 1e15;  // not so for "nan"
  return is_whole && number >= 0 && number <= kMost ? std::optional(number) : std::nullopt;
}

std::string_view setting_of(const ReportResult& result, const std::string& name) {
  const auto found = result.record->config.find(name);
  return found == result.record->config.end() ? kUnknown : std::string_view(found->second);
}

std::optional<Estimate> prompts_per_second(const ReportResult& result) {
  if (!is_point(result)) return std::nullopt;
  const auto prompts = result.record->summary.find("throughput_prompts_per_second");
  if (prompts == result.record->summary.end()) return std::nullopt;
  Estimate scaled{.value = prompts->second, .low = {}, .high = {}};
  const auto requests = figure_of(result.loads.front(), "throughput");
  if (!requests || requests->value <= 0) return scaled;
  const double factor = prompts->second / requests->value;
  if (requests->low) scaled.low = *requests->low * factor;
  if (requests->high) scaled.high = *requests->high * factor;
  return scaled;
}

std::vector<std::string> varying_settings(std::span<const ReportResult> results) {
  std::set<std::string> names;
  std::size_t count = 0;
  for (const auto& result : results) {
    if (!is_point(result)) continue;
    ++count;
    for (const auto& [name, value] : result.record->config) names.insert(name);
  }
  std::vector<std::string> varying;
  for (const auto& name : names) {
    std::set<std::string_view> values;
    for (const auto& result : results) {
      if (is_point(result)) values.insert(setting_of(result, name));
    }
    if (count > 1 && values.size() > 1) varying.push_back(name);
  }
  return varying;
}

std::vector<SweepLines> sweep_lines(std::span<const ReportResult> results) {
  std::vector<SweepLines> sweeps;
  add_points(sweeps, results);
  add_loads(sweeps, results, "clients", clients_of);
  add_loads(sweeps, results, "rate", rate_of);
  return sweeps;
}

}  // namespace muster
