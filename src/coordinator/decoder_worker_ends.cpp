// How workers that generate end and start again. What they had is lost to others as soon as no
// answer is to be expected; every end comes to `end_life` once the process is gone.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "coordinator/decoder_workers.h"
#include "coordinator/silence.h"

namespace muster {
namespace {

// A process that closed its socket or was killed is gone in milliseconds; then it is killed again.
constexpr Duration kEndAllowance = std::chrono::seconds(1);
// For all of them to be gone when the decoder is given up for good.
constexpr Duration kStopAllowance = std::chrono::seconds(3);
// A limit that is over for so long was not looked at: this process was stopped itself.
constexpr Duration kPause = std::chrono::seconds(2);

}  // namespace

// How it dies is told before the kernel has freed its memory, which may be gigabytes: its replies
// do not wait for that.
void DecoderWorkers::on_stream_end(std::size_t index, const std::optional<WorkerDeath>& death) {
  auto& group = groups_[index];
  if (group.state != State::Failed) group.state = State::Ended;
  if (!group.end_by) group.end_by = parts_.clock.now() + kEndAllowance;
  if (death && !group.was_ended) {
    if (group.state == State::Ended && group.goal == GroupGoal::Serve) {
      group.reason = fmt::format("its worker ended with {}", death->reason);
    }
    group.lost_stream_count += parts_.client.on_lost(
        index, {.is_own_fault = death->is_own_fault, .reason = death->reason});
  }
  parts_.signal.change();
}

void DecoderWorkers::on_exit(std::size_t index) {
  auto& group = groups_[index];
  if (const auto death = parts_.processes.reap(index, Duration{0})) {
    return end_life(index, *death);
  }
  if (!group.end_by) group.end_by = parts_.clock.now() + kEndAllowance;
}

void DecoderWorkers::kill(std::size_t index, const std::string& reason) {
  auto& group = groups_[index];
  parts_.on_notice(fmt::format("the worker is ended: {}", reason), index);
  group.state = State::Ended;
  group.reason = reason;
  group.was_ended = true;
  parts_.processes.end(index, GroupEnding::Kill);
  group.end_by = parts_.clock.now() + kEndAllowance;
  parts_.client.on_lost(index, {.is_own_fault = true, .reason = reason});
  parts_.signal.change();
}

// It finishes nothing more, and is at no fault.
void DecoderWorkers::close(std::size_t index, const std::string& reason) {
  auto& group = groups_[index];
  group.state = State::Ended;
  group.was_ended = true;
  parts_.processes.end(index, GroupEnding::EndOfStream);
  group.end_by = parts_.clock.now() + kEndAllowance;
  parts_.client.on_lost(index, {.is_own_fault = false, .is_death = false, .reason = reason});
  parts_.signal.change();
}

// For something that no operator has asked for.
void DecoderWorkers::close_for(std::size_t index, const std::string& reason) {
  parts_.on_notice(fmt::format("the worker is ended: {}", reason), index);
  groups_[index].reason = reason;
  close(index, reason);
}

void DecoderWorkers::end_at_fault(std::size_t index, std::uint32_t life) {
  auto& group = groups_[index];
  if (group.state != State::Ready || group.restart_count != life) return;
  group.was_at_fault = true;
  close_for(index, "it failed at a reply that another worker has gone on with");
}

void DecoderWorkers::finish_drains(TimePoint now) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& group = groups_[i];
    if (group.goal == GroupGoal::Serve || !group.is_running() || group.end_by) continue;
    if (parts_.client.owed_count(i) == 0 || now >= group.drain_until) {
      close(i, std::string(group.reason));
    }
  }
}

void DecoderWorkers::end_life(std::size_t index, const WorkerDeath& death) {
  auto& group = groups_[index];
  const auto output = parts_.processes.last_output(
      index, [&](const std::string& line) { parts_.on_notice(line, index); });
  parts_.processes.leave(index);
  group.pid.reset();
  group.end_by.reset();
  group.earlier_preemption_count += std::exchange(group.cache_use, {}).preemption_count;
  const bool has_failed = group.state == State::Failed;
  if (!has_failed) group.state = State::Ended;
  const bool is_own_fault = !group.was_ended && death.is_own_fault;
  const auto stream_count =
      std::exchange(group.lost_stream_count, 0) +
      parts_.client.on_lost(index, {.is_own_fault = is_own_fault, .reason = death.reason});
  parts_.signal.change();
  if (stop_by_) return;
  if (group.goal == GroupGoal::Drain) {
    if (!has_failed) group.reason = "drained";
    return;
  }
  if (group.goal == GroupGoal::Restart) return start_soon(index);
  if (has_failed) return;
  if (!group.was_ended) {
    group.reason = fmt::format("its worker ended with {}", death.reason);
    // One that was killed from outside has not said why.
    if (death.is_own_fault && !output.empty()) {
      group.reason += fmt::format("; it last said: {}", last_line(output));
    }
  }
  plan_restart(index, death, stream_count);
}

// What the worker said stays out of it: this is for whoever asks, and that may name files.
void DecoderWorkers::note_failed_start(Group& group, const WorkerDeath& death) {
  ++group.failed_start_count;
  group.start_error = std::exchange(group.canary_error, std::nullopt);
  if (!group.was_ended && !death.is_own_fault) {
    group.faulty_start_count = 0;
    return;
  }
  ++group.faulty_start_count;
  group.start_failure = group.was_ended ? "its worker was ended"
                                        : fmt::format("its worker ended with {}", death.reason);
}

void DecoderWorkers::plan_restart(std::size_t index, const WorkerDeath& death,
                                  std::size_t stream_count) {
  auto& group = groups_[index];
  if (std::exchange(group.ends_for_memory, false)) return plan_try(index);
  group.memory.reset();
  if (!group.was_ready) note_failed_start(group, death);
  if (group.failed_start_count >= kFailedStartsMost) group.is_asked_for = false;
  const auto now = parts_.clock.now();
  // Memory that is too small for a model shows as kills from outside, load after load.
  const bool is_own_fault = death.is_own_fault || group.failed_start_count >= kFailedStartsMost;
  const RestartPolicy::Death ended{.was_ready = group.was_ready,
                                   .is_own_fault = is_own_fault,
                                   .is_at_fault = group.was_at_fault};
  const auto delay = group.restarts.on_death(now, ended).value_or(Duration{0});
  group.restart_at = now + delay;
  std::string lost;
  if (stream_count > 0) {
    lost =
        stream_count == 1 ? "it had 1 reply, " : fmt::format("it had {} replies, ", stream_count);
  }
  parts_.on_notice(
      fmt::format("worker ended with {}; {}restart {}", death.reason, lost,
                  delay == Duration{0} ? "at once" : fmt::format("in {:.1f} s", seconds(delay))),
      index);
}

// Its next load may find the memory that the last one did not.
void DecoderWorkers::plan_try(std::size_t index) {
  auto& group = groups_[index];
  group.faulty_start_count = 0;
  group.restart_at = group.memory->at();
  parts_.on_notice(fmt::format("no memory to load the decoder; it is tried again in {:.0f} s",
                               seconds(group.memory->pause())),
                   index);
}

void DecoderWorkers::start_again(std::size_t index, TimePoint now) {
  auto& group = groups_[index];
  group.restart_at.reset();
  ++group.restart_count;
  if (const auto started = start_group(index); !started) {
    group.reason = started.error().message;
    ++group.failed_start_count;
    group.restart_at =
        now + group.restarts.on_death(now, {.was_ready = false, .is_own_fault = true})
                  .value_or(kEndAllowance);
  }
  parts_.signal.change();
}

// A process that no signal ends is asked for again and again; where all are to go for good, it is
// left to the system.
void DecoderWorkers::look_at_end(std::size_t index, TimePoint now) {
  auto& group = groups_[index];
  if (const auto death = parts_.processes.reap(index, Duration{0})) {
    return end_life(index, *death);
  }
  parts_.processes.end(index, GroupEnding::Kill);
  group.end_by = now + kEndAllowance;
  parts_.client.on_lost(index, {.is_own_fault = false, .reason = "its worker does not end"});
  if (!stop_by_ || now < *stop_by_) return;
  parts_.on_notice(fmt::format("its worker, process {}, was killed and does not end: it is left to "
                               "the system",
                               *group.pid),
                   index);
  parts_.processes.leave(index);
  group.pid.reset();
  group.end_by.reset();
  parts_.signal.change();
}

void DecoderWorkers::check_time(TimePoint now) {
  forgive_pause(now);
  apply(canaries_.on_time(now));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& group = groups_[i];
    if (group.end_by && now >= *group.end_by) look_at_end(i, now);
    const auto silent = silent_at(i);
    if (silent && now >= *silent) kill(i, "it has said nothing for too long");
    if (group.restart_at && now >= *group.restart_at) start_again(i, now);
  }
}

// The caller steps when a limit is over; where that is long ago, it was this process that stood
// still (a container that was paused, a machine that slept), and what workers say is not read yet.
void DecoderWorkers::forgive_pause(TimePoint now) {
  bool was_paused = false;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto silent = silent_at(i);
    was_paused = was_paused || (silent && now >= *silent + kPause);
  }
  if (!was_paused) return;
  for (auto& group : groups_) {
    group.watch.start_over(now);
    if (group.started_at) group.started_at = now;
  }
}

// nullopt: nothing is expected of it.
std::optional<TimePoint> DecoderWorkers::silent_at(std::size_t index) const {
  const auto& group = groups_[index];
  if (group.state == State::Loading && !group.canary) {
    if (!group.started_at) return group.watch.since() + options_.load_most;
    return *group.started_at + greeting_allowed(longest_greeting_, group.failed_start_count);
  }
  const bool owes_canary =
      group.state == State::Loading && !group.canary->is_judged;  // else another one is waited for
  const bool owes_reply = group.state == State::Ready && parts_.client.owed_count(index) > 0;
  if (!owes_canary && !owes_reply) return std::nullopt;
  return group.watch.until(options_.silence_most);
}

TimePoint DecoderWorkers::next_deadline() const {
  auto next = canaries_.deadline().value_or(TimePoint::max());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& group = groups_[i];
    for (const auto& at : {group.restart_at, group.end_by, silent_at(i)}) {
      if (at) next = std::min(next, *at);
    }
    const bool is_draining = group.goal != GroupGoal::Serve && group.is_running() && !group.end_by;
    if (is_draining) next = std::min(next, group.drain_until);
  }
  return next;
}

void DecoderWorkers::stop() {
  if (stop_by_) return;
  stop_by_ = parts_.clock.now() + kStopAllowance;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].restart_at.reset();
    if (groups_[i].is_running() && !groups_[i].end_by) close(i, "the model is unloaded");
  }
  parts_.signal.change();
}

bool DecoderWorkers::is_stopped() const {
  return stop_by_ && std::none_of(groups_.begin(), groups_.end(),
                                  [](const Group& group) { return group.is_running(); });
}

}  // namespace muster
