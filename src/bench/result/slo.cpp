// Objectives as a user writes them: a figure, a sign and a limit with its unit. Units are required
// for times, because 500 might be meant as milliseconds or seconds. A figure that the trial does
// not have is not met: an objective that could not be judged must not pass.

#include "bench/result/slo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "bench/statistics/percentile.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 5> kTimes{"latency", "service", "ttft", "tpot", "itl"};
constexpr std::array<std::string_view, 6> kPoints{"p50", "p90", "p95", "p99", "p999", "mean"};
constexpr std::array<double, 5> kShares{0.5, 0.9, 0.95, 0.99, 0.999};  // of the percentiles
constexpr std::string_view kErrorRate = "error_rate";
constexpr std::array<std::string_view, 2> kRates{"throughput", "token_throughput"};

struct Unit {
  std::string_view name;
  double size;
};

constexpr std::array kTimeUnits{Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
constexpr std::array kShareUnits{Unit{"%", 0.01}, Unit{"", 1}};
constexpr std::array kRateUnits{Unit{"/s", 1}, Unit{"", 1}};

bool is_rate(std::string_view figure) { return std::ranges::find(kRates, figure) != kRates.end(); }

template <std::size_t Count>
// A unit that is not in the list is a fault, not a number without one.
std::optional<double> number_with_unit(std::string_view text,
                                       const std::array<Unit, Count>& units) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  const auto unit = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  for (const auto& one : units) {
    if (one.name == unit) return value * one.size;
  }
  return std::nullopt;
}

Error wrong_value(std::string_view figure, std::string_view text) {
  const std::string_view example = figure == kErrorRate ? "a share, as 1%"
                                   : is_rate(figure)    ? "a number a second, as 100"
                                                        : "a time with its unit, as 500ms";
  return {ErrorKind::InvalidArgument, fmt::format("{} wants {}: \"{}\"", figure, example, text)};
}

Result<Objective> parse_objective(std::string_view text) {
  const auto sign = text.find_first_of("<>");
  if (sign == std::string_view::npos) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("an objective has the form ttft_p99<500ms: \"{}\"", text)};
  }
  Objective objective{.figure = std::string(trim(text.substr(0, sign))),
                      .is_upper_limit = text[sign] == '<',
                      .text = std::string(text)};
  const auto names = objective_figures();
  if (std::ranges::find(names, objective.figure) == names.end()) {
    const auto nearest = nearest_name(objective.figure, names);
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("there is no figure {}; {}", objective.figure,
                             nearest ? fmt::format("did you mean {}?", *nearest)
                                     : fmt::format("there are {}", fmt::join(names, ", ")))};
  }
  const auto value = trim(text.substr(sign + 1));
  const auto limit = objective.figure == kErrorRate ? number_with_unit(value, kShareUnits)
                     : is_rate(objective.figure)    ? number_with_unit(value, kRateUnits)
                                                    : number_with_unit(value, kTimeUnits);
  if (!limit) return wrong_value(objective.figure, value);
  objective.limit = *limit;
  return objective;
}

}  // namespace

std::vector<std::string> objective_figures() {
  std::vector<std::string> names;
  for (const auto time : kTimes) {
    for (const auto point : kPoints) names.push_back(fmt::format("{}_{}", time, point));
  }
  names.emplace_back(kErrorRate);
  names.insert(names.end(), kRates.begin(), kRates.end());
  return names;
}

Result<std::vector<Objective>> parse_objectives(std::string_view text) {
  std::vector<Objective> objectives;
  for (const auto& part : split(text, ',')) {
    objectives.push_back(MUSTER_TRY(parse_objective(trim(part))));
  }
  return objectives;
}

std::optional<std::uint64_t> samples_needed_of(std::string_view figure) {
  const auto cut = std::min(figure.rfind('_'), figure.size());
  if (std::ranges::find(kTimes, figure.substr(0, cut)) == kTimes.end()) return std::nullopt;
  const auto point = figure.substr(std::min(cut + 1, figure.size()));
  for (std::size_t i = 0; i < kShares.size(); ++i) {
    if (kPoints[i] == point) return samples_needed(kShares[i]);
  }
  return 1;
}

// The limit itself does not meet the objective, as its sign says.
std::vector<ObjectiveResult> judge_objectives(const std::vector<Objective>& objectives,
                                              const FigureMap& figures) {
  std::vector<ObjectiveResult> results;
  for (const auto& objective : objectives) {
    ObjectiveResult result{.objective = objective};
    const auto found = figures.find(objective.figure);
    if (found != figures.end()) {
      result.value = found->second;
      result.is_met = objective.is_upper_limit ? found->second < objective.limit
                                               : found->second > objective.limit;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace muster
