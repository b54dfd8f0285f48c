#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "bench/load/load_client.h"
#include "bench/load/sample.h"

namespace muster {

/// Collects the samples of a trial as they end, and gives them in the order of their intended
/// times. No call before `finish` takes longer for how many there are: a vector that grows past
/// 32,768 samples moves them for 4 ms, and the requests that are due meanwhile are late.
///
/// Threads: not thread-safe.
class SampleRecorder {
 public:
  explicit SampleRecorder(bool keeps_text) : keeps_text_(keeps_text) {}

  void add(EndedRequest ended);
  /// A request that was never sent.
  void add_unsent(double intended, double end);
  void add_tick(double lateness) { ticks_.push_back(lateness); }

  /// What was added, with the counters and times of `rest`.
  TrialSamples finish(const TrialSamples& rest);

 private:
  struct Stage {
    std::string name;
    std::deque<double> seconds;
  };

  void keep_problem(const Sample& sample, std::string sentence);
  void add_stage(std::string name, double duration);

  const bool keeps_text_;
  TrialSamples kept_;  // all but what grows, which is in the members below until `finish`
  std::deque<Sample> samples_;
  std::deque<float> gaps_;
  std::vector<Stage> stages_;
  std::deque<std::string> texts_;
  std::deque<double> ticks_;
  std::map<std::int32_t, std::size_t> sentences_;  // that were kept, by status
};

}  // namespace muster
