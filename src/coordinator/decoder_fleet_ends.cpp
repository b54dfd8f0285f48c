// How workers that generate end and start again, and what becomes of their streams.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/decoder_fleet.h"
#include "coordinator/silence.h"

namespace muster {
namespace {

// A process that closed its socket or was killed is gone in milliseconds; then it is killed again.
constexpr Duration kEndAllowance = std::chrono::seconds(1);
constexpr Duration kTokenAllowance = std::chrono::milliseconds(500);
// A limit that is over for so long was not looked at: this process was stopped itself.
constexpr Duration kPause = std::chrono::seconds(2);
// So many workers had a stream, the last ones it alone, and died without a token of it.
constexpr std::uint32_t kStrikesMost = 3;
// So many died with it, be it with some tokens each time.
constexpr std::uint32_t kDeathsMost = 64;

}  // namespace

Status DecoderFleet::start_group(std::size_t index) {
  auto& group = groups_[index];
  MUSTER_TRY(runner_.start(index, {options_.devices[index]}));
  group.is_running = true;
  group.was_ready = group.was_killed = false;
  group.state = State::Loading;
  group.started_at = group.heard_at = clock_.now();
  prefixes_.forget(index);
  // The worker reads it once it has greeted; nothing is lost if that greeting is refused.
  runner_.send(index, MessageType::LoadDecoder, 0,
               encode(LoadDecoder{.source = options_.source,
                                  .precision = options_.precision,
                                  .cpus = options_.devices[index].cpus,
                                  .cache_bytes = options_.cache_bytes,
                                  .sequences_most = options_.streams_most,
                                  .has_prefix_cache = options_.has_prefix_cache}));
  return Done{};
}

// What a worker has sent is not what a worker sends; where all are of another build, that is the
// end.
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
  group.was_killed = true;
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
  if (!group.was_ready) ++group.failed_start_count;
  group.state = State::Ended;
  if (!group.was_killed) group.reason = fmt::format("its worker ended with {}", death.reason);
  lose(index, death.is_own_fault, death.reason);
  const auto now = clock_.now();
  // Memory that is too small for a model shows as kills from outside, load after load.
  const bool is_own_fault = death.is_own_fault || group.failed_start_count >= kFailedStartsMost;
  const auto delay =
      group.restarts.on_death(now, {.was_ready = group.was_ready, .is_own_fault = is_own_fault})
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
// for. No worker has any of them before the first callback: one that is cancelled there is owed by
// none.
void DecoderFleet::lose(std::size_t index, bool is_own_fault, const std::string& reason) {
  groups_[index].owed.clear();
  const auto lost = std::exchange(groups_[index].streams, {});
  for (const auto id : lost) streams_.at(id).group.reset();
  for (const auto id : lost) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;  // cancelled from within what was told of another
    auto& stream = found->second;
    const auto& request = stream.request;
    const bool is_full = length_max_ > 0 && request.ids.size() >= length_max_;
    if (request.reply_count > 0 && (request.token_limit == 0 || is_full)) {
      streams_.erase(id);
      events_.on_finished(id, FinishReason::Length);
      continue;
    }
    if (is_own_fault && !stream.has_token) ++stream.strikes;
    if (is_own_fault) ++stream.death_count;
    if (stream.strikes < kStrikesMost && stream.death_count < kDeathsMost) {
      waiting_.insert(id);
      continue;
    }
    const auto deaths = stream.death_count;
    streams_.erase(id);
    events_.on_failed(
        id,
        {ErrorKind::Internal,
         fmt::format("{} workers ended with this request, the last one by: {}", deaths, reason)},
        true);
  }
}

void DecoderFleet::check_time(TimePoint now) {
  forgive_pause(now);
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
        ++group.failed_start_count;
        group.restart_at =
            now + group.restarts.on_death(now, {.was_ready = false, .is_own_fault = true})
                      .value_or(kEndAllowance);
      }
    }
  }
}

// The caller steps when a limit is over; where that is long ago, it was this process that stood
// still (a container that was paused, a machine that slept), and what workers say is not read yet.
void DecoderFleet::forgive_pause(TimePoint now) {
  const bool was_paused = std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
    const auto silent = silent_at(group);
    return silent && now >= *silent + kPause;
  });
  if (!was_paused) return;
  for (auto& group : groups_) {
    group.heard_at = now;
    if (group.started_at) group.started_at = now;
  }
}

// nullopt: nothing is expected of it. A worker speaks after each of its steps, which computes at
// most so many tokens, of prompts or of replies whose keys gave way to others.
std::optional<TimePoint> DecoderFleet::silent_at(const Group& group) const {
  if (group.state == State::Loading) {
    if (!group.started_at) return group.heard_at + options_.load_most;
    return *group.started_at + greeting_allowed(longest_greeting_, group.failed_start_count);
  }
  if (group.state != State::Ready || group.load() == 0) return std::nullopt;
  std::size_t tokens = 0;
  for (const auto id : group.streams) tokens += streams_.at(id).request.ids.size();
  for (const auto& [id, count] : group.owed) tokens += count;
  const std::size_t most = LoadDecoder{}.step_tokens_most;
  return group.heard_at + options_.silence_most +
         kTokenAllowance * static_cast<long>(std::min(tokens, most));
}

}  // namespace muster
