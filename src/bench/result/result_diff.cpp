// The reader takes the figures that a result states rather than working them out again, so a
// comparison shows what the reports showed.
#include "bench/result/result_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "base/text.h"
#include "bench/result/trial_summary.h"
#include "bench/statistics/percentile.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kSchemaVersion = 1;
constexpr double kPerCent = 100;
constexpr int kDepthMost = 32;  // of what is read: a result has eight, and copies are recursive
constexpr std::uint64_t kRequestsMost = 1'000'000'000'000;  // of a trial: sums stay exact
// A run may have many figures; these say most, and each further one costs the others some power.
constexpr std::array<std::string_view, 8> kCompared{
    "throughput", "token_throughput", "latency_p50", "latency_p99",
    "ttft_p50",   "ttft_p99",         "tpot_p50",    "tpot_p99"};
constexpr std::string_view kErrorRate = "error_rate";

Error not_a_result(std::string_view name, std::string_view why) {
  return {ErrorKind::Corrupt, fmt::format("{}: this is no result of muster bench: {}", name, why)};
}

const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

// The answers behind a trial's rates; 0: not known. Those that came after the sending had ended are
// not among them, so this is not the count of all that were answered.
double counted_answers(const Json& trial, const Json& figures) {
  const auto* seconds = member(trial, "counted_seconds");
  const auto* rate = member(figures, "throughput");
  if (seconds == nullptr || !seconds->is_number() || rate == nullptr || !rate->is_number())
    return 0;
  return seconds->get<double>() * rate->get<double>();
}

// What came behind a trial's rate of tokens; 0: not known. Where nothing is written the tokens of
// prompts come with the answers.
double counted_pieces(const Json& trial, double answers) {
  const auto* tokens = member(trial, "tokens");
  const auto* pieces = tokens == nullptr ? nullptr : member(*tokens, "output_pieces");
  if (pieces == nullptr || !pieces->is_number_unsigned()) return answers;
  const auto count = pieces->get<std::uint64_t>();
  return count > 0 ? static_cast<double>(count) : answers;
}

// Empty where one is not known.
void clear_unless_all(std::vector<double>& counts) {
  if (std::ranges::any_of(counts, [](double count) { return !(count > 0); })) counts.clear();
}

// One answer in the counted time of a trial whose answers all came after it; nullopt: it is none.
std::optional<double> late_rate_bound(const Json& trial, const Json& figures) {
  const auto* seconds = member(trial, "counted_seconds");
  const auto* requests = member(trial, "requests");
  if (member(figures, "throughput") != nullptr || requests == nullptr) return std::nullopt;
  const auto* missed = member(*requests, "missed_at_end");
  const auto* answered = member(*requests, "answered");
  if (seconds == nullptr || !seconds->is_number() || missed == nullptr || answered == nullptr ||
      !missed->is_number_unsigned() || !answered->is_number_unsigned()) {
    return std::nullopt;
  }
  const double counted = seconds->get<double>();
  const auto count = answered->get<std::uint64_t>();
  if (!(counted > 0) || count == 0 || missed->get<std::uint64_t>() != count) return std::nullopt;
  return 1 / counted;
}

// Nothing sent: not known, or no share.
FailureCount failure_count(const Json& trial) {
  const auto* requests = member(trial, "requests");
  if (requests == nullptr) return {};
  const auto* sent = member(*requests, "sent");
  const auto* answered = member(*requests, "answered");
  if (sent == nullptr || !sent->is_number_unsigned() || answered == nullptr ||
      !answered->is_number_unsigned()) {
    return {};
  }
  FailureCount count{.failed = 0, .sent = sent->get<std::uint64_t>()};
  const auto good = answered->get<std::uint64_t>();
  if (good > count.sent || count.sent > kRequestsMost) return {};
  count.failed = count.sent - good;
  return count;
}

// A figure is a time, a rate or a share; more than a machine could do in a second is none.
bool is_figure(const Json& value) {
  constexpr double kMost = 1e15;
  return value.is_number() && value.get<double>() >= 0 && value.get<double>() <= kMost;
}

// damage: ResultFigures::damage.
Result<ResultFigures::Point> read_point(const Json& json, std::string_view name,
                                        std::string& damage) {
  const auto* load = member(json, "load");
  const auto* trials = member(json, "trials");
  if (load == nullptr || !load->is_string() || trials == nullptr || !trials->is_array()) {
    return not_a_result(name, "a point has no load or no trials");
  }
  ResultFigures::Point point{.load = *load, .trial_count = trials->size()};
  std::size_t number = 0;
  for (const auto& trial : *trials) {
    ++number;
    const auto* valid = member(trial, "valid");
    const auto* figures = member(trial, "figures");
    if (valid == nullptr || !valid->is_boolean() || figures == nullptr || !figures->is_object()) {
      return not_a_result(name, "a trial has no figures");
    }
    point.is_valid = point.is_valid && valid->get<bool>();
    for (const auto& [figure, value] : figures->items()) {
      if (is_figure(value)) {
        point.figures[figure].push_back(value.get<double>());
      } else if (damage.empty()) {
        damage = fmt::format("{}: {} of trial {} of {} is {}: a figure is a number from 0 to 1e15",
                             name, excerpt(figure), number, excerpt(point.load),
                             excerpt(value.dump(-1, ' ', false, Json::error_handler_t::replace)));
      }
    }
    point.answers.push_back(counted_answers(trial, *figures));
    point.pieces.push_back(counted_pieces(trial, point.answers.back()));
    point.failures.push_back(failure_count(trial));
    if (const auto bound = late_rate_bound(trial, *figures)) point.rate_bounds.push_back(*bound);
  }
  clear_unless_all(point.answers);
  clear_unless_all(point.pieces);
  const bool has_all_counts =
      std::ranges::all_of(point.failures, [](const FailureCount& count) { return count.sent > 0; });
  if (!has_all_counts) point.failures.clear();
  std::erase_if(point.figures,
                [&](const auto& entry) { return entry.second.size() != point.trial_count; });
  return point;
}

// A point of `bench run` knows more than whether its requests were sent in time: a device may have
// been away meanwhile.
void read_run(const Json& run, ResultFigures& result) {
  const auto* valid = member(run, "valid");
  if (valid == nullptr || *valid != false) return;
  std::vector<std::string> reasons;
  const auto* given = member(run, "invalid_reasons");
  for (const auto& reason : given != nullptr && given->is_array() ? *given : Json::array()) {
    if (reason.is_string()) reasons.push_back(reason.get<std::string>());
  }
  if (reasons.empty()) reasons.emplace_back("it says no reason");
  result.invalid_reason = fmt::format("{}", fmt::join(reasons, "; "));
  for (auto& point : result.points) point.is_valid = false;
}

const ResultFigures::Point* point_of(const ResultFigures& result, const std::string& load) {
  const auto found = std::ranges::find(result.points, load, &ResultFigures::Point::load);
  return found == result.points.end() ? nullptr : &*found;
}

struct Pair {
  const ResultFigures::Point* a;
  const ResultFigures::Point* b;
  std::string_view figure;
};

// The values of a figure, one for each trial; empty where they have no ratio: some trial does not
// have it, or has 0.
std::span<const double> ratio_values(const ResultFigures::Point& point, std::string_view figure) {
  const auto found = point.figures.find(figure);
  if (found == point.figures.end()) return {};
  const bool is_positive =
      std::ranges::all_of(found->second, [](double value) { return value > 0; });
  return is_positive ? std::span<const double>(found->second) : std::span<const double>();
}

double resolution_of(const ResultFigures::Point& point, std::string_view figure) {
  if (!is_rate_figure(figure)) return 0;
  return count_resolution(figure == "token_throughput" ? point.pieces : point.answers);
}

std::vector<Pair> common_loads(const ResultFigures& a, const ResultFigures& b) {
  std::vector<Pair> pairs;
  for (const auto& point : a.points) {
    const auto* other = point_of(b, point.load);
    if (other != nullptr) pairs.push_back({&point, other, {}});
  }
  return pairs;
}

std::vector<Pair> common_figures(const ResultFigures& a, const ResultFigures& b) {
  std::vector<Pair> pairs;
  for (const auto& [point, other, none] : common_loads(a, b)) {
    for (const auto figure : kCompared) {
      if (ratio_values(*point, figure).empty() || ratio_values(*other, figure).empty()) continue;
      pairs.push_back({point, other, figure});
    }
  }
  return pairs;
}

bool has_answered_nothing(const ResultFigures::Point& point) {
  const auto found = point.figures.find("throughput");
  return found != point.figures.end() && !found->second.empty() &&
         std::ranges::all_of(found->second, [](double value) { return value == 0; });
}

// Loads of which B has answered nothing and A has: no ratio says so.
std::vector<FigureDifference> lost_loads(const ResultFigures& a, const ResultFigures& b) {
  std::vector<FigureDifference> lost;
  for (const auto& [point, other, none] : common_loads(a, b)) {
    const auto of_a = ratio_values(*point, "throughput");
    if (of_a.size() < 2 || other->trial_count < 2 || !has_answered_nothing(*other)) continue;
    const bool is_valid = point->is_valid && other->is_valid;
    lost.push_back(
        {.load = point->load,
         .figure = "throughput",
         .a = mean_over_trials(of_a, kUsualConfidence).mean,
         .b = 0,
         .comparison = {.ratio = 0, .low = 0, .high = 0, .difference = Difference::Lower},
         .is_worse = is_valid,
         .is_valid = is_valid});
  }
  return lost;
}

// Of a load A has a rate, and B only answers that came after the sending had ended.
bool is_late(const Pair& pair) {
  const auto& bounds = pair.b->rate_bounds;
  return ratio_values(*pair.a, "throughput").size() >= 2 && bounds.size() >= 2 &&
         bounds.size() == pair.b->trial_count;
}

std::vector<Pair> late_loads(const ResultFigures& a, const ResultFigures& b) {
  auto pairs = common_loads(a, b);
  std::erase_if(pairs, [](const Pair& pair) { return !is_late(pair); });
  return pairs;
}

FigureDifference late_difference(const Pair& pair, const ComparisonRule& rule) {
  const auto rate = mean_over_trials(ratio_values(*pair.a, "throughput"), rule.confidence,
                                     resolution_of(*pair.a, "throughput"));
  const double most = std::ranges::max(pair.b->rate_bounds);
  Comparison comparison{.ratio = 0, .low = 0, .high = std::numeric_limits<double>::infinity()};
  if (rate.low > 0) comparison.high = most / rate.low;
  if (comparison.high < 1 / (1 + rule.tolerance)) comparison.difference = Difference::Lower;
  const bool is_valid = pair.a->is_valid && pair.b->is_valid;
  return {.load = pair.a->load,
          .figure = "throughput",
          .a = rate.mean,
          .b = 0,
          .comparison = comparison,
          .is_worse = is_valid && comparison.difference == Difference::Lower,
          .is_valid = is_valid};
}

// Of all requests where they are known, else the mean over the trials.
double error_rate(const ResultFigures::Point& point) {
  if (!point.failures.empty()) return share_over_trials(point.failures, kUsualConfidence).value;
  const auto found = point.figures.find(kErrorRate);
  if (found == point.figures.end() || found->second.empty()) return 0;
  return mean_over_trials(found->second, kUsualConfidence).mean;
}

// Times are those of answered requests: a server that refuses half of them may look faster.
void add_load_notes(const Pair& pair, std::vector<std::string>& notes) {
  const double of_a = error_rate(*pair.a);
  const double of_b = error_rate(*pair.b);
  if (of_a != of_b) {
    notes.push_back(fmt::format("{}: {:.3g} % of the requests failed in A and {:.3g} % in B",
                                pair.a->load, kPerCent * of_a, kPerCent * of_b));
  }
  if (is_late(pair)) {
    notes.push_back(
        fmt::format("{}: all answers of B came after the sending had ended: its throughput is "
                    "below one answer a trial",
                    pair.a->load));
  }
  for (const auto figure : kCompared) {
    if (figure == "throughput" && is_late(pair)) continue;
    const bool has_a = !ratio_values(*pair.a, figure).empty();
    const bool has_b = !ratio_values(*pair.b, figure).empty();
    if (has_a == has_b) continue;
    notes.push_back(fmt::format("{}: {} is not compared: not each trial of {} has it", pair.a->load,
                                figure, has_a ? "B" : "A"));
  }
}

bool has_failures(const ResultFigures::Point& point) {
  return std::ranges::any_of(point.failures,
                             [](const FailureCount& count) { return count.failed > 0; });
}

// Loads whose failures can be compared. Where none failed on either side no verdict is possible,
// and a figure less leaves the others more power.
std::vector<Pair> failing_loads(const ResultFigures& a, const ResultFigures& b) {
  auto pairs = common_loads(a, b);
  std::erase_if(pairs, [](const Pair& pair) {
    return pair.a->failures.size() < 2 || pair.b->failures.size() < 2 ||
           (!has_failures(*pair.a) && !has_failures(*pair.b));
  });
  return pairs;
}

Result<FigureDifference> failure_difference(const Pair& pair, const ComparisonRule& rule) {
  const bool is_valid = pair.a->is_valid && pair.b->is_valid;
  const auto comparison = MUSTER_TRY(compare_failures(pair.a->failures, pair.b->failures, rule));
  return FigureDifference{.load = pair.a->load,
                          .figure = std::string(kErrorRate),
                          .a = error_rate(*pair.a),
                          .b = error_rate(*pair.b),
                          .comparison = comparison,
                          .is_worse = is_valid && comparison.difference == Difference::Higher,
                          .is_valid = is_valid};
}

void add_notes(const ResultFigures& a, const ResultFigures& b, std::vector<std::string>& notes) {
  if (a.environment != b.environment) notes.emplace_back("the environments differ");
  for (const auto& [side, result] : {std::pair("A", &a), std::pair("B", &b)}) {
    if (!result->invalid_reason.empty()) {
      notes.push_back(fmt::format("{} is not valid: {}", side, result->invalid_reason));
      continue;
    }
    for (const auto& point : result->points) {
      if (!point.is_valid) {
        notes.push_back(fmt::format("{}: a trial of {} is invalid", side, point.load));
      }
    }
  }
  for (const auto& pair : common_loads(a, b)) add_load_notes(pair, notes);
  for (const auto& point : a.points) {
    if (point_of(b, point.load) == nullptr)
      notes.push_back(fmt::format("only A has {}", point.load));
  }
  for (const auto& point : b.points) {
    if (point_of(a, point.load) == nullptr)
      notes.push_back(fmt::format("only B has {}", point.load));
  }
}

}  // namespace

Result<ResultFigures> read_result_figures(std::string_view json, std::string_view name) {
  // The samples are most of a result, and no comparison needs them.
  const auto keep = [](int depth, Json::parse_event_t event, Json& parsed) {
    return depth < kDepthMost && (event != Json::parse_event_t::key || parsed != "samples");
  };
  const auto parsed = Json::parse(json, keep, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return not_a_result(name, "it is no JSON object");
  const auto* version = member(parsed, "schema_version");
  const auto* points = member(parsed, "points");
  if (version == nullptr || points == nullptr || !points->is_array()) {
    return not_a_result(name, "it has no schema_version or no points");
  }
  if (*version != kSchemaVersion) {
    return not_a_result(
        name,
        fmt::format("its schema_version is {}, not {}",
                    version->dump(-1, ' ', false, Json::error_handler_t::replace), kSchemaVersion));
  }
  ResultFigures result;
  if (const auto* environment = member(parsed, "environment")) {
    // The clock at one moment is no difference between machines.
    auto rest = *environment;
    if (rest.is_object()) rest.erase("clock_hertz");
    result.environment = rest.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  for (const auto& point : *points)
    result.points.push_back(MUSTER_TRY(read_point(point, name, result.damage)));
  if (const auto* run = member(parsed, "run")) read_run(*run, result);
  return result;
}

bool ResultDifference::has_worse() const {
  return std::ranges::any_of(figures, &FigureDifference::is_worse);
}

bool ResultDifference::is_invalid() const {
  return std::ranges::none_of(figures, &FigureDifference::is_valid);
}

Result<ResultDifference> compare_results(const ResultFigures& a, const ResultFigures& b,
                                         const ComparisonRule& rule) {
  ResultDifference result{.figures = lost_loads(a, b), .notes = {}};
  add_notes(a, b, result.notes);
  const auto late = late_loads(a, b);
  const auto pairs = common_figures(a, b);
  const auto failing = failing_loads(a, b);
  if (late.empty() && pairs.empty() && failing.empty() && result.figures.empty()) {
    return Error{ErrorKind::InvalidArgument, "the results have no load and figure in common"};
  }
  auto each = rule;
  const auto count = std::max<std::size_t>(1, late.size() + pairs.size() + failing.size());
  each.confidence = 1 - (1 - rule.confidence) / static_cast<double>(count);
  for (const auto& pair : late) result.figures.push_back(late_difference(pair, each));
  for (const auto& pair : pairs) {
    const auto& of_a = pair.a->figures.find(pair.figure)->second;
    const auto& of_b = pair.b->figures.find(pair.figure)->second;
    const auto comparison = MUSTER_TRY(compare_trials(
        of_a, of_b, each,
        {.a = resolution_of(*pair.a, pair.figure), .b = resolution_of(*pair.b, pair.figure)}));
    // Of rates more is better, of times less.
    const auto worse = is_rate_figure(pair.figure) ? Difference::Lower : Difference::Higher;
    const bool is_valid = pair.a->is_valid && pair.b->is_valid;
    result.figures.push_back({.load = pair.a->load,
                              .figure = std::string(pair.figure),
                              .a = mean_over_trials(of_a, kUsualConfidence).mean,
                              .b = mean_over_trials(of_b, kUsualConfidence).mean,
                              .comparison = comparison,
                              .is_worse = is_valid && comparison.difference == worse,
                              .is_valid = is_valid});
  }
  for (const auto& pair : failing) {
    result.figures.push_back(MUSTER_TRY(failure_difference(pair, each)));
  }
  return result;
}

// Whether more is better depends on the figure; the comparison has settled it, and the sign would
// mislead.
std::string verdict_words(const FigureDifference& one) {
  if (one.comparison.difference == Difference::None) return "no difference";
  const auto* word = one.is_worse ? "WORSE" : "better";
  if (one.figure == kErrorRate) {
    return fmt::format("{} by {:.3g} points", word, kPerCent * std::abs(one.b - one.a));
  }
  return fmt::format("{} by {:.1f} %", word, std::abs(kPerCent * (one.comparison.ratio - 1)));
}

}  // namespace muster
