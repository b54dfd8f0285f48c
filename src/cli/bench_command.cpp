// `muster bench`: one function for each kind of task, and the exit codes. Four codes tell four
// failures apart for a script: the instrument was too late for its figures to be trusted, B is
// worse than A, an objective was missed, an objective is not known. The order matters: a result
// that cannot be trusted is reported as such before its objectives are looked at.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/build_info.h"
#include "base/child_process.h"
#include "base/file.h"
#include "bench/result/result_json.h"
#include "bench/selftest/selftest.h"
#include "cli/bench_measurement.h"
#include "cli/bench_options.h"
#include "cli/bench_output.h"
#include "cli/bench_report.h"
#include "cli/bench_view.h"
#include "cli/command.h"
#include "cli/flag_number.h"
#include "cli/interrupt.h"
#include "cli/sweep/init_file.h"
#include "cli/sweep/sweep_run.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kInvalidExit = 22;  // docs/errors.md has them
constexpr int kWorseExit = 23;
constexpr int kObjectiveExit = 24;
constexpr int kUnknownExit = 25;
constexpr int kSignalBase = 128;

bool is_cancelled() { return interrupt_signal() != 0; }

Status keep_result(const CommandContext& context, const std::string& json) {
  const auto file = context.arguments.value("--out");
  if (!file) return Done{};
  MUSTER_TRY(check_bench_output(*file));  // while minutes were measured another may have come
  return write_file_atomically(*file, json);
}

Result<int> report(const CommandContext& context, const BenchResult& result) {
  const auto json = result_json(result);
  const auto kept = keep_result(context, json);
  MUSTER_TRY(context.output.append(
      context.arguments.has("--json") ? json
                                      : bench_text(result, context.terminal(STDOUT_FILENO).width)));
  if (!kept) {
    MUSTER_TRY(context.output.flush());  // what was measured is told all the same
    return kept.error();
  }
  if (!result.is_conclusive()) return kInvalidExit;
  if (result.meets_objectives()) return 0;
  return result.misses_objectives() ? kObjectiveExit : kUnknownExit;
}

// Before minutes are measured.
Result<std::optional<OutputLock>> take_output(const Arguments& arguments) {
  const auto file = arguments.value("--out");
  if (!file) return std::optional<OutputLock>();
  MUSTER_TRY(check_bench_output(*file));
  return hold_bench_output(*file);
}

Result<int> run_measurement(const CommandContext& context, BenchTask task) {
  const auto plan = MUSTER_TRY(bench_plan(context.arguments, task));
  const auto lock = MUSTER_TRY(take_output(context.arguments));
  return report(context, MUSTER_TRY(measure(context, plan)));
}

Result<double> percent(const Arguments& arguments, std::string_view flag, double usual) {
  const auto text = arguments.value(flag);
  if (!text) return usual;
  std::string_view digits = *text;
  if (digits.ends_with('%')) digits.remove_suffix(1);
  double value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  constexpr double kPerCent = 100;
  const bool is_within = value >= 0 && value < kPerCent;  // not so for "nan"
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || !is_within) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} must be a percentage from 0 to below 100: \"{}\"", flag, *text)};
  }
  return value / kPerCent;
}

// The confidence is that of all verdicts together, so that many figures do not make a false alarm
// likely.
Result<ComparisonRule> comparison_rule(const Arguments& arguments) {
  ComparisonRule rule;
  rule.confidence = MUSTER_TRY(percent(arguments, "--confidence", rule.confidence));
  rule.tolerance = MUSTER_TRY(percent(arguments, "--tolerance", rule.tolerance));
  return rule;
}

Json difference_json(const ResultDifference& difference) {
  Json json{{"worse", difference.has_worse()}, {"notes", difference.notes}};
  json["figures"] = Json::array();
  for (const auto& one : difference.figures) {
    const auto& comparison = one.comparison;
    json["figures"].push_back(
        {{"load", one.load},
         {"figure", one.figure},
         {"a", one.a},
         {"b", one.b},
         {"ratio", comparison.ratio},
         {"low", comparison.low},
         {"high", comparison.high},
         {"verdict", !one.is_valid                               ? "invalid"
                     : comparison.difference == Difference::None ? "no difference"
                     : one.is_worse                              ? "worse"
                                                                 : "better"}});
  }
  return json;
}

Result<int> run_diff(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  if (words.size() != 3) {
    return Error{ErrorKind::InvalidArgument, "muster bench diff wants two results: A and B"};
  }
  const auto rule = MUSTER_TRY(comparison_rule(context.arguments));
  constexpr std::uint64_t kResultBytesMost = 4ULL << 30;
  std::vector<ResultFigures> sides;
  for (const auto& file : {words[1], words[2]}) {
    const auto text = MUSTER_TRY(read_file(file, kResultBytesMost));
    sides.push_back(MUSTER_TRY(read_result_figures(text, file)));
    // Without it a row would be missing, and nothing would say so.
    if (!sides.back().damage.empty()) return corrupt_error(sides.back().damage);
  }
  const auto difference = MUSTER_TRY(compare_results(sides[0], sides[1], rule));
  MUSTER_TRY(
      context.output.append(context.arguments.has("--json")
                                ? difference_json(difference).dump() + "\n"
                                : diff_text(difference, context.terminal(STDOUT_FILENO).width)));
  if (difference.is_invalid()) return kInvalidExit;
  return difference.has_worse() ? kWorseExit : 0;
}

Json checks_json(const std::vector<SelftestCheck>& checks) {
  Json json{{"build", build_name()}, {"checks", Json::array()}};
  for (const auto& check : checks) {
    json["checks"].push_back({{"part", check.part},
                              {"what", check.what},
                              {"value", check.value},
                              {"measured", check.measured},
                              {"required", check.required},
                              {"met", check.is_met}});
  }
  return json;
}

Result<int> run_selftest(const CommandContext& context) {
  const auto& words = context.arguments.positionals;
  std::vector<std::string> parts(words.begin() + 1, words.end());
  if (parts.empty()) parts = {"intervals", "compare", "warm-up", "rate", "freeze", "queue"};
  // All of them before the first, which may take minutes.
  for (const auto& part : parts) MUSTER_TRY(check_selftest_part(part));
  SelftestOptions options{.null_server = program_beside("muster-null-server").string(),
                          .is_full = context.arguments.has("--full"),
                          .is_cancelled = is_cancelled,
                          .on_step = say_bench_step};
  if (const auto seed = context.arguments.value("--seed")) {
    options.seed = MUSTER_TRY(whole_number_of("--seed", *seed, {.example = 7}));
  }
  catch_interrupts();
  std::vector<SelftestCheck> checks;
  bool is_met = true;
  for (const auto& part : parts) {
    auto found = MUSTER_TRY(muster::run_selftest(part, options));
    for (auto& check : found) {
      is_met = is_met && check.is_met;
      checks.push_back(std::move(check));
    }
  }
  MUSTER_TRY(context.output.append(
      context.arguments.has("--json") ? checks_json(checks).dump() + "\n" : selftest_text(checks)));
  return is_met ? 0 : kInvalidExit;
}

Result<int> run_bench_command(const CommandContext& context) {
  const auto task = MUSTER_TRY(bench_task(context.arguments));
  // It keeps what was finished and says so itself.
  if (task == BenchTask::Run) return run_bench_file(context);
  if (task == BenchTask::Init) return write_bench_file(context);
  if (task == BenchTask::Report) {
    return write_bench_report(context, MUSTER_TRY(comparison_rule(context.arguments)));
  }
  const auto ended = task == BenchTask::Diff       ? run_diff(context)
                     : task == BenchTask::Selftest ? run_selftest(context)
                                                   : run_measurement(context, task);
  if (!ended && interrupt_signal() != 0) {
    say_bench_step("interrupted; nothing of this run is kept");
    return kSignalBase + interrupt_signal();
  }
  return ended;
}

}  // namespace

Command bench_command() { return {bench_spec(), run_bench_command}; }

}  // namespace muster
