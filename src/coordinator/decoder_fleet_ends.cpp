// How workers that generate end and start again, and what becomes of their streams.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/decoder_fleet.h"

namespace muster {
namespace {

// A process that closed its socket or was killed is gone in milliseconds; then it is killed again.
constexpr Duration kEndAllowance = std::chrono::seconds(1);
constexpr Duration kPromptTokenAllowance = std::chrono::milliseconds(500);
// So many workers had a stream, the last ones it alone, and died without a token of it.
constexpr std::uint32_t kStrikesMost = 3;

}  // namespace

Status DecoderFleet::start_group(std::size_t index) {
  auto& group = groups_[index];
  MUSTER_TRY(runner_.start(index, {options_.devices[index]}));
  group.is_running = true;
  group.state = State::Loading;
  group.heard_at = clock_.now();
  // The worker reads it once it has greeted; nothing is lost if that greeting is refused.
  runner_.send(index, MessageType::LoadDecoder, 0,
               encode(LoadDecoder{.source = options_.source,
                                  .precision = options_.precision,
                                  .cpus = options_.devices[index].cpus,
                                  .cache_bytes = options_.cache_bytes,
                                  .sequences_most = options_.streams_most}));
  return Done{};
}

// What a worker has sent is not what a worker sends; one of another build ends all.
Status DecoderFleet::on_broken(std::size_t group, const Error& error) {
  if (fatal_) return *fatal_;
  kill(group, error.message);
  return Done{};
}

void DecoderFleet::on_stream_end(std::size_t index) {
  auto& group = groups_[index];
  if (group.state != State::Failed) group.state = State::Ended;
  if (!group.end_by) group.end_by = clock_.now() + kEndAllowance;
  signal_.change();
}

void DecoderFleet::on_exit(std::size_t index) {
  auto& group = groups_[index];
  if (const auto death = runner_.reap(index, Duration{0})) return end_life(index, *death);
  if (!group.end_by) group.end_by = clock_.now() + kEndAllowance;
}

void DecoderFleet::on_line(std::size_t group, const std::string& line) {
  events_.on_notice(line, group);
}

// One that had loaded before is started again: what was in its way may pass.
void DecoderFleet::on_load_failed(std::size_t index, const Error& error) {
  auto& group = groups_[index];
  events_.on_notice(fmt::format("the decoder cannot be loaded: {}", error.message), index);
  group.reason = error.message;
  if (group.was_ever_ready) return kill(index, error.message);
  load_error_ = error;
  group.state = State::Failed;
  runner_.end(index, GroupEnding::EndOfStream);
  group.end_by = clock_.now() + kEndAllowance;
  signal_.change();
}

void DecoderFleet::kill(std::size_t index, const std::string& reason) {
  auto& group = groups_[index];
  events_.on_notice(fmt::format("the worker is ended: {}", reason), index);
  group.state = State::Ended;
  group.reason = reason;
  runner_.end(index, GroupEnding::Kill);
  group.end_by = clock_.now() + kEndAllowance;
  lose(index, true, reason);
  signal_.change();
}

void DecoderFleet::end_life(std::size_t index, const WorkerDeath& death) {
  auto& group = groups_[index];
  const auto last =
      runner_.last_output(index, [&](const std::string& line) { events_.on_notice(line, index); });
  group.is_running = false;
  group.end_by.reset();
  if (group.state == State::Failed) return;
  const auto count = group.streams.size();
  const bool was_ready = group.was_ever_ready;
  group.state = State::Ended;
  group.reason = fmt::format("its worker ended with {}", death.reason);
  lose(index, death.is_own_fault, death.reason);
  const auto now = clock_.now();
  const auto delay =
      group.restarts.on_death(now, {.was_ready = was_ready, .is_own_fault = death.is_own_fault})
          .value_or(Duration{0});
  group.restart_at = now + delay;
  events_.on_notice(
      fmt::format("worker ended with {}; {} replies go on elsewhere, restart {}", death.reason,
                  count,
                  delay == Duration{0} ? "at once" : fmt::format("in {:.1f} s", seconds(delay))),
      index);
  signal_.change();
}

// Its streams wait again. One whose last token had come, and its end not, has nothing left to ask
// for.
void DecoderFleet::lose(std::size_t index, bool is_own_fault, const std::string& reason) {
  for (const auto id : std::exchange(groups_[index].streams, {})) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;  // cancelled from within what was told of another
    auto& stream = found->second;
    stream.group.reset();
    const auto& request = stream.request;
    const bool is_full = length_max_ > 0 && request.ids.size() >= length_max_;
    if (request.reply_count > 0 && (request.token_limit == 0 || is_full)) {
      streams_.erase(id);
      events_.on_finished(id, FinishReason::Length);
      continue;
    }
    if (is_own_fault && !stream.has_token) ++stream.strikes;
    if (stream.strikes < kStrikesMost) {
      waiting_.insert(id);
      continue;
    }
    streams_.erase(id);
    events_.on_failed(id, {ErrorKind::Internal,
                           fmt::format("{} workers ended with this request, the last one by: {}",
                                       kStrikesMost, reason)});
  }
}

void DecoderFleet::check_time(TimePoint now) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto& group = groups_[i];
    if (group.end_by && now >= *group.end_by) {
      if (const auto death = runner_.reap(i, Duration{0})) {
        end_life(i, *death);
      } else {
        runner_.end(i, GroupEnding::Kill);
        group.end_by = now + kEndAllowance;
        lose(i, false, "its worker does not end");
      }
    }
    const auto silent = silent_at(group);
    if (silent && now >= *silent) kill(i, "it has said nothing for too long");
    if (group.restart_at && now >= *group.restart_at) {
      group.restart_at.reset();
      ++group.restart_count;
      if (const auto started = start_group(i); !started) {
        group.reason = started.error().message;
        group.restart_at =
            now + group.restarts.on_death(now, {.was_ready = false, .is_own_fault = true})
                      .value_or(kEndAllowance);
      }
    }
  }
}

// nullopt: nothing is expected of it.
std::optional<TimePoint> DecoderFleet::silent_at(const Group& group) const {
  if (group.state != State::Ready || group.streams.empty()) return std::nullopt;
  std::size_t prompt_tokens = 0;
  for (const auto id : group.streams) {
    const auto& stream = streams_.at(id);
    if (!stream.has_token) prompt_tokens += stream.request.ids.size();
  }
  return group.heard_at + options_.silence_most +
         kPromptTokenAllowance * static_cast<long>(prompt_tokens);
}

}  // namespace muster
