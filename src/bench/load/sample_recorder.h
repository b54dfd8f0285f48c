#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "bench/load/load_client.h"
#include "bench/load/sample.h"

namespace muster {

/// Collects the samples of a trial as they end, and gives them in the order of their intended
/// times.
///
/// Threads: not thread-safe.
class SampleRecorder {
 public:
  explicit SampleRecorder(bool keeps_text) : keeps_text_(keeps_text) {}

  void add(EndedRequest ended);
  /// A request that was never sent.
  void add_unsent(double intended, double end);
  void add_tick(double lateness) { samples_.tick_lateness.push_back(lateness); }

  /// What was added, with the counters and times of `rest`.
  TrialSamples finish(const TrialSamples& rest);

 private:
  void keep_problem(const Sample& sample, std::string sentence);

  const bool keeps_text_;
  TrialSamples samples_;
  std::map<std::int32_t, std::size_t> sentences_;  // that were kept, by status
};

}  // namespace muster
