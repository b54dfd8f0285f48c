// Columns that few answers have (stages, texts) are kept beside the samples and put in order with
// them at the end.
#include "bench/load/sample_recorder.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kProblemsMost = 8;  // different sentences; the samples have all failures
constexpr std::size_t kAlikeMost = 2;     // of one status: servers put ids into what they say
constexpr std::size_t kStagesMost = 64;   // different names; more are no stages

template <typename Value>
std::vector<Value> in_order(std::deque<Value>& column, const std::vector<std::uint32_t>& order) {
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const auto i : order) sorted.push_back(std::move(column[i]));
  column.clear();
  return sorted;
}

}  // namespace

void SampleRecorder::keep_problem(const Sample& sample, std::string sentence) {
  auto& problems = kept_.problems;
  const bool is_new = std::ranges::find(problems, sentence) == problems.end();
  if (!is_new || problems.size() == kProblemsMost) return;
  const bool has_status =
      sample.outcome == SampleEnd::Refused || sample.outcome == SampleEnd::BadStatus;
  if (has_status && sentences_[sample.status]++ >= kAlikeMost) return;
  problems.push_back(std::move(sentence));
}

void SampleRecorder::add(EndedRequest ended) {
  auto& sample = samples_.emplace_back(ended.sample);
  const auto& times = ended.token_times;
  sample.token_events = static_cast<std::uint32_t>(times.size());
  sample.gaps_begin = gaps_.size();
  for (std::size_t i = 1; i < times.size(); ++i) {
    gaps_.push_back(static_cast<float>(times[i] - times[i - 1]));
  }
  if (keeps_text_) texts_.push_back(std::move(ended.text));
  if (kept_.server.empty()) kept_.server = std::move(ended.server);
  if (ended.problem && sample.outcome == SampleEnd::Broken) kept_.last_broken = *ended.problem;
  if (ended.problem) keep_problem(sample, std::move(*ended.problem));
  kept_.stages_left_out += ended.timing.left_out;
  for (auto& [name, duration] : ended.timing.stages) add_stage(std::move(name), duration);
}

// Of the newest sample.
void SampleRecorder::add_stage(std::string name, double duration) {
  auto stage = std::ranges::find(stages_, name, &Stage::name);
  if (stage == stages_.end()) {
    if (stages_.size() == kStagesMost) {
      ++kept_.stages_left_out;
      return;
    }
    stages_.push_back({std::move(name), {}});
    stage = stages_.end() - 1;
  }
  // A name that comes twice in an answer counts twice.
  if (stage->seconds.size() == samples_.size()) {
    stage->seconds.back() += duration;
    return;
  }
  stage->seconds.resize(samples_.size() - 1, kNever);
  stage->seconds.push_back(duration);
}

void SampleRecorder::add_unsent(double intended, double end) {
  samples_.push_back({.intended = intended, .end = end});
  if (keeps_text_) texts_.emplace_back();
}

TrialSamples SampleRecorder::finish(const TrialSamples& rest) {
  std::vector<std::uint32_t> order(samples_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return samples_[i].intended; });
  for (auto& stage : stages_) {
    stage.seconds.resize(samples_.size(), kNever);
    kept_.stages.push_back({std::move(stage.name), in_order(stage.seconds, order)});
  }
  if (keeps_text_) kept_.texts = in_order(texts_, order);
  kept_.samples = in_order(samples_, order);
  kept_.gaps.assign(gaps_.begin(), gaps_.end());
  kept_.tick_lateness.assign(ticks_.begin(), ticks_.end());
  kept_.sending_seconds = rest.sending_seconds;
  kept_.own_cpu_seconds = rest.own_cpu_seconds;
  kept_.connections_opened = rest.connections_opened;
  kept_.connections_most = rest.connections_most;
  return std::move(kept_);
}

}  // namespace muster
