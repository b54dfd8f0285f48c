#pragma once

#include <functional>

#include "base/result.h"
#include "bench/result/bench_result.h"
#include "cli/bench_options.h"
#include "cli/bench_subject.h"
#include "cli/command.h"

namespace muster {

/// What is done beside a measurement; an error of any ends it.
struct BenchHooks {
  std::function<Status(const BenchServer&)> on_ready = [](const BenchServer&) { return Done{}; };
  std::function<Status()> on_trial_begin = [] { return Done{}; };  // as BenchRunOptions
  std::function<Status()> on_trial_end = [] { return Done{}; };
  /// While the server of the measurement still runs.
  std::function<Status(const BenchServer&, const BenchResult&)> on_measured =
      [](const BenchServer&, const BenchResult&) { return Done{}; };
};

/// Finds or starts the plan's server, sends its loads and says what that showed.
///
/// context: its words and flags go into the result.
/// Errors: those of opening the server and of run_bench; Unavailable (no request was answered; a
/// server of our own ended meanwhile, with its last words); InvalidArgument (the warm-up that was
/// asked for leaves no answer).
Result<BenchResult> measure(const CommandContext& context, BenchPlan plan,
                            const BenchHooks& hooks = {});

/// "muster: …" on standard error; lost where that cannot be written.
void say_bench_step(std::string_view text);

}  // namespace muster
