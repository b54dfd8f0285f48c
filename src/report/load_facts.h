#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report_result.h"

namespace muster {

/// A figure of a load with its interval: of one trial that of its samples, where they say one; of
/// several that of the means. nullopt: it was not measured. figure: as objectives have it. Threads:
/// pure.
std::optional<Estimate> figure_of(const ReportLoad& load, std::string_view figure);

/// Figures that views show, in their order: as the terminal shows of several trials.
struct ShownFigure {
  std::string_view figure;
  std::string_view title;  // with its unit
};
std::vector<ShownFigure> shown_figures();

/// A figure in the digits of the terminal: times in milliseconds. Threads: pure.
std::string shown_value(std::string_view figure, double value);

/// "20.0" and, below it, "19.9 to 20.1" or "19.9 to ?"; as HTML. Threads: pure.
std::string estimate_html(std::string_view figure, const Estimate& estimate);

/// The same, or words that say why there is none. Threads: pure.
std::string figure_html_of(const ReportLoad& load, std::string_view figure);

/// What an objective came out at: "12.3 ms", "0.010", "not measured". Threads: pure.
std::string objective_value_text(const ReportObjective& objective);

/// What a reader must know before a load's figures are believed.
struct LoadWarning {
  std::string badge;     // "INVALID"
  std::string sentence;  // "INVALID: the load generator was late: …"; text
};
std::vector<LoadWarning> warnings_of(const ReportResult& result, const ReportLoad& load);

/// The badges in a cell of a table, as HTML; "valid" where there is none. Threads: pure.
std::string badges_html(const std::vector<LoadWarning>& warnings);

/// The warnings as they stand above the figures, as HTML. Threads: pure.
std::string warnings_html(const std::vector<LoadWarning>& warnings);

/// Whether its figures may be taken as they stand: neither invalid nor unsteady. Threads: pure.
bool is_to_be_trusted(const std::vector<LoadWarning>& warnings);

/// The verdict of a result in one line of text, as the terminal has it. Threads: pure.
std::string verdict_of(const ReportResult& result);

/// How many requests of all trials were sent, and how many failed; nullopt: the result does not
/// say.
struct RequestCounts {
  std::uint64_t sent = 0;
  std::uint64_t failed = 0;
};
std::optional<RequestCounts> counts_of(const ReportLoad& load);

}  // namespace muster
