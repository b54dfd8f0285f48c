#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <functional>
#include <random>
#include <vector>

#include "integration/program.h"

namespace muster {

/// A program that is killed and started again, until it ends by itself.
struct KilledRuns {
  std::function<Program(bool resume)> run;
  int signal_number = SIGKILL;
  int attempts_most = 10;
  /// Whether its output has the final name: the kill may come between the last rename and the exit.
  std::function<bool()> is_complete;
  /// What a run that no kill met has left is taken away, and it begins anew.
  std::function<void()> remove_output;
};

/// Kills each run at a random moment of the time that the first, undisturbed one has taken, so that
/// the moments spread over start, work and end; a machine that was busy then and is not now only
/// makes them earlier. What is unfinished behind the last attempt is resumed. No worker may outlive
/// a run that was killed, and at least one must have been.
///
/// undisturbed: runs it whole, to another output, and must end well. The exit code of the last one.
inline int run_until_it_ends(const KilledRuns& runs, const std::function<int()>& undisturbed) {
  const auto start = std::chrono::steady_clock::now();
  const int first = undisturbed();
  if (first != 0) return first;
  const auto whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  int kill_count = 0;
  int exit_code = -1;
  auto moment_max = static_cast<int>(whole_ms.count()) + 1;
  for (int attempt = 0; attempt < runs.attempts_most; ++attempt) {
    const Program program = runs.run(kill_count > 0);
    if (ends_within(program.pidfd(), static_cast<int>(random() % moment_max))) {
      exit_code = program.wait();
      if (kill_count > 0) break;
      runs.remove_output();
      moment_max = moment_max / 2 + 1;
      continue;
    }
    std::vector<UniqueFd> workers;
    for (const auto pid : program.children()) workers.push_back(open_pidfd(pid));
    ::kill(program.pid(), runs.signal_number);
    ++kill_count;
    exit_code = program.wait();
    for (const auto& worker : workers) {
      EXPECT_TRUE(ends_within(worker, 20'000)) << "a worker outlives its parent";
    }
    if (runs.is_complete()) break;
  }
  EXPECT_GT(kill_count, 0);
  return exit_code == 0 ? exit_code : runs.run(true).wait();
}

}  // namespace muster
