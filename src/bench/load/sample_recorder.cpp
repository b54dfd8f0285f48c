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

template <typename Column>
void put_in_order(Column& column, const std::vector<std::uint32_t>& order) {
  Column sorted;
  sorted.reserve(order.size());
  for (const auto i : order) sorted.push_back(std::move(column[i]));
  column = std::move(sorted);
}

}  // namespace

void SampleRecorder::keep_problem(const Sample& sample, std::string sentence) {
  auto& problems = samples_.problems;
  const bool is_new = std::ranges::find(problems, sentence) == problems.end();
  if (!is_new || problems.size() == kProblemsMost) return;
  const bool has_status =
      sample.outcome == SampleEnd::Refused || sample.outcome == SampleEnd::BadStatus;
  if (has_status && sentences_[sample.status]++ >= kAlikeMost) return;
  problems.push_back(std::move(sentence));
}

void SampleRecorder::add(EndedRequest ended) {
  auto& sample = samples_.samples.emplace_back(ended.sample);
  const auto& times = ended.token_times;
  sample.token_events = static_cast<std::uint32_t>(times.size());
  sample.gaps_begin = samples_.gaps.size();
  for (std::size_t i = 1; i < times.size(); ++i) {
    samples_.gaps.push_back(static_cast<float>(times[i] - times[i - 1]));
  }
  if (keeps_text_) samples_.texts.push_back(std::move(ended.text));
  if (samples_.server.empty()) samples_.server = std::move(ended.server);
  if (ended.problem && sample.outcome == SampleEnd::Broken) samples_.last_broken = *ended.problem;
  if (ended.problem) keep_problem(sample, std::move(*ended.problem));
  samples_.stages_left_out += ended.timing.left_out;
  for (auto& [name, duration] : ended.timing.stages) {
    auto column = std::ranges::find(samples_.stages, name, &StageColumn::name);
    if (column == samples_.stages.end()) {
      if (samples_.stages.size() == kStagesMost) {
        ++samples_.stages_left_out;
        continue;
      }
      samples_.stages.push_back({std::move(name), {}});
      column = samples_.stages.end() - 1;
    }
    // A name that comes twice in an answer counts twice.
    const bool is_again = column->seconds.size() == samples_.samples.size();
    column->seconds.resize(samples_.samples.size() - (is_again ? 0 : 1), kNever);
    if (is_again) {
      column->seconds.back() += duration;
    } else {
      column->seconds.push_back(duration);
    }
  }
}

void SampleRecorder::add_unsent(double intended, double end) {
  samples_.samples.push_back({.intended = intended, .end = end});
  if (keeps_text_) samples_.texts.emplace_back();
}

TrialSamples SampleRecorder::finish(const TrialSamples& rest) {
  auto& samples = samples_.samples;
  std::vector<std::uint32_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return samples[i].intended; });
  for (auto& column : samples_.stages) {
    column.seconds.resize(samples.size(), kNever);
    put_in_order(column.seconds, order);
  }
  if (keeps_text_) put_in_order(samples_.texts, order);
  put_in_order(samples, order);
  samples_.sending_seconds = rest.sending_seconds;
  samples_.own_cpu_seconds = rest.own_cpu_seconds;
  samples_.connections_opened = rest.connections_opened;
  samples_.connections_most = rest.connections_most;
  return std::move(samples_);
}

}  // namespace muster
