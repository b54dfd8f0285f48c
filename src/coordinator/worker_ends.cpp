// How groups end and start again. Every end, whoever caused it, comes to `end_life` once the last
// process is gone; what the group had goes back earlier, as soon as no answer is to be expected.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "coordinator/worker_supervisor.h"

namespace muster {
namespace {

// For a worker that was killed to be gone; a device that hangs in its driver may take longer, and
// is killed again.
constexpr Duration kKillAllowance = std::chrono::seconds(1);

// Until it is reported that a killed worker does not end. A driver that resets a device holds the
// processes on it for seconds.
constexpr Duration kStuckAllowance = std::chrono::seconds(10);

}  // namespace

void WorkerSupervisor::end_group(std::size_t group, EndReason why, const std::string& reason,
                                 WorkerEnd end) {
  auto& life = groups_[group].life;
  life.end_reason = why;
  life.reason = reason;
  groups_[group].health.slow.reset();
  parts_.processes.end(group, GroupEnding::Kill);
  life.end_by = parts_.clock.now() + kKillAllowance;
  parts_.client.on_state(group);
  lose(group, end, reason);
  parts_.signal.change();
}

void WorkerSupervisor::close(std::size_t index) {
  auto& life = groups_[index].life;
  life.end_reason = EndReason::Operator;
  groups_[index].health.slow.reset();
  parts_.processes.end(index, GroupEnding::EndOfStream);
  life.end_by = parts_.clock.now() + kKillAllowance;
  parts_.client.on_state(index);
  lose(index, WorkerEnd::Innocent, "drained");
  parts_.signal.change();
}

void WorkerSupervisor::convict(std::size_t group, const std::string& reason) {
  groups_[group].life.is_at_fault = true;
  quarantine(group, reason);
  end_group(group, EndReason::Health, reason, WorkerEnd::Innocent);
}

void WorkerSupervisor::lose(std::size_t index, WorkerEnd end, const std::string& reason) {
  auto& sent = groups_[index].sent;
  const GroupLoss loss{.end = end, .reason = reason, .running = sent.running()};
  sent.clear();
  parts_.client.on_lost(index, loss);
}

void WorkerSupervisor::on_exit(std::size_t group) {
  if (const auto death = parts_.processes.reap(group, Duration{0})) return end_life(group, *death);
  // Others of the group are still to go, or another process that traces one has not let it go:
  // asked for again then.
  auto& life = groups_[group].life;
  if (!life.end_by) life.end_by = parts_.clock.now() + kKillAllowance;
  parts_.client.on_state(group);
}

// A group that was killed is asked for again and again; one that a call holds in the kernel may
// stay for hours.
void WorkerSupervisor::kill_again(std::size_t index, TimePoint now) {
  auto& group = groups_[index];
  auto& life = group.life;
  if (const auto death = parts_.processes.reap(index, Duration{0})) return end_life(index, *death);
  parts_.processes.end(index, GroupEnding::Kill);
  life.end_by = now + kKillAllowance;
  // One that ended by itself still has its texts: they do not wait until it can be waited for.
  const bool was_ended = life.end_reason != EndReason::None;
  lose(index, was_ended ? WorkerEnd::Innocent : WorkerEnd::Silent, "its worker does not end");
  if (!life.stuck_since) life.stuck_since = now;
  const bool is_stuck = now - *life.stuck_since >= kStuckAllowance;
  if (!is_stuck || std::exchange(life.is_stuck, true)) return;
  const auto reason = fmt::format(
      "its worker, process {}, was killed and does not end: a call into "
      "the driver holds it",
      fmt::join(group.pids, ", "));
  if (options_.gives_up) return give_up(index, reason);
  life.reason = reason;
  notice(index, fmt::format("{}; the device waits for its end", reason));
  parts_.signal.change();
}

void WorkerSupervisor::end_life(std::size_t index, const WorkerDeath& death) {
  auto& group = groups_[index];
  auto& life = group.life;
  const bool was_ready = std::exchange(life.was_ready, false);
  parts_.processes.end(index, GroupEnding::EndOfStream);
  const auto output =
      parts_.processes.last_output(index, [&](const std::string& line) { on_line(index, line); });
  reaped_cpu_seconds_ += death.cpu_seconds;
  const auto how = fmt::format("worker ended with {}{}{}", death.reason,
                               output.empty() ? "" : "; it last said: ", last_line(output));
  life.last_words = fmt::format("{}: {}", life.name, how);
  parts_.processes.leave(index);
  group.pids.clear();
  life.has_processes = false;
  life.end_by.reset();
  life.stuck_since.reset();
  life.is_stuck = false;
  group.health.slow.reset();
  life.is_greeted = life.is_probing = false;
  const auto frame_count = group.sent.size() + std::exchange(life.lost_frame_count, 0);
  const bool was_ended = life.end_reason != EndReason::None;
  if (!was_ended && !life.is_quarantined) life.reason = how;
  parts_.client.on_ended(index);
  parts_.client.on_state(index);
  const bool is_own_fault = !was_ended && death.is_own_fault;
  lose(index, is_own_fault ? WorkerEnd::Died : WorkerEnd::Innocent, death.reason);
  parts_.signal.change();
  plan_restart(index, death, was_ready, frame_count);
}

void WorkerSupervisor::plan_restart(std::size_t index, const WorkerDeath& death, bool was_ready,
                                    std::size_t frame_count) {
  const auto now = parts_.clock.now();
  auto& life = groups_[index].life;
  const bool is_at_fault = std::exchange(life.is_at_fault, false);
  if (life.is_given_up) return;
  if (life.goal == GroupGoal::Drain) {
    life.reason = life.drained_reason();
    return;
  }
  if (life.goal == GroupGoal::Restart) {
    life.goal = GroupGoal::Serve;
    life.reason = "started again by an operator";
    life.restart_at = now;
    return;
  }
  life.is_asked_for = false;
  if (life.fault) {
    notice(index,
           fmt::format("worker ended with {}; {} batches wait again", death.reason, frame_count));
    return;
  }
  const auto delay = groups_[index].health.restarts.on_death(
      now,
      {.was_ready = was_ready, .is_own_fault = death.is_own_fault, .is_at_fault = is_at_fault});
  if (!delay) return give_up(index, std::string(life.reason));
  life.restart_at = now + *delay;
  notice(index,
         fmt::format(
             "worker ended with {}; {} batches wait again, restart {}", death.reason, frame_count,
             *delay == Duration{0} ? "at once" : fmt::format("in {:.1f} s", seconds(*delay))));
}

Status WorkerSupervisor::start_again(std::size_t index, TimePoint now) {
  auto& group = groups_[index];
  if (group.life.serial > 0) ++group.life.restart_count;
  const auto started = start_group(index);
  if (started) return Done{};
  if (options_.gives_up) return started.error();
  group.life.reason = started.error().message;
  const auto delay =
      group.health.restarts.on_death(now, {.was_ready = false, .is_own_fault = true});
  group.life.restart_at = now + delay.value_or(Duration{0});
  return Done{};
}

void WorkerSupervisor::give_up(std::size_t group, const std::string& reason,
                               std::optional<Error> load_error) {
  auto& life = groups_[group].life;
  life.is_given_up = true;
  life.is_quarantined = false;
  life.restart_at.reset();
  notice(group, fmt::format("{}; it is given up", reason));
  if (life.is_alive()) close(group);
  life.reason = reason;
  if (load_error) life.load_error = std::move(load_error);
  parts_.signal.change();
}

void WorkerSupervisor::finish_drain(std::size_t group, TimePoint now) {
  const auto& life = groups_[group].life;
  if (life.goal == GroupGoal::Serve || !life.is_alive()) return;
  const bool is_idle = groups_[group].sent.empty() && !life.is_probing;
  if (is_idle || now >= life.drain_until) close(group);
}

void WorkerSupervisor::drain(std::size_t group) {
  auto& life = groups_[group].life;
  if (life.is_given_up || life.goal == GroupGoal::Drain) return;
  life.goal = GroupGoal::Drain;
  begin_drain(group);
}

void WorkerSupervisor::restart(std::size_t group) {
  auto& life = groups_[group].life;
  if (life.goal == GroupGoal::Drain) return resume(group);
  if (life.is_given_up || life.is_idle || life.goal == GroupGoal::Restart) return;
  if (life.fault) return start_after_fault(group);  // who asks for it knows of the fault
  // One that is not running anyway is started now, without its back-off.
  if (life.restart_at) {
    life.restart_at = parts_.clock.now();
    parts_.signal.change();
    return;
  }
  life.goal = GroupGoal::Restart;
  begin_drain(group);
}

void WorkerSupervisor::begin_drain(std::size_t index) {
  auto& life = groups_[index].life;
  life.drain_until = parts_.clock.now() + options_.drain_limit;
  if (!life.has_processes) life.restart_at.reset();
  life.is_quarantined = false;
  life.was_slow = false;
  life.is_asked_for = true;
  life.reason =
      life.goal == GroupGoal::Drain ? life.drained_reason() : "started again by an operator";
  parts_.client.on_state(index);
  parts_.signal.change();
}

void WorkerSupervisor::resume(std::size_t group) {
  auto& life = groups_[group].life;
  if (life.goal != GroupGoal::Drain) return;
  if (life.end_by) {
    // It ends already: it starts again when it has ended.
    life.goal = GroupGoal::Restart;
  } else {
    life.goal = GroupGoal::Serve;
    if (!life.has_processes && !life.is_idle) life.restart_at = parts_.clock.now();
  }
  life.is_asked_for = true;
  life.fault.reset();  // its reason told of it
  life.reason.clear();
  parts_.client.on_state(group);
  parts_.signal.change();
}

// One that was drained meanwhile starts when it is resumed.
void WorkerSupervisor::wake(std::size_t group) {
  auto& life = groups_[group].life;
  if (!std::exchange(life.is_idle, false) || life.goal != GroupGoal::Serve) return;
  if (life.fault) return;
  life.restart_at = parts_.clock.now();
  parts_.signal.change();
}

}  // namespace muster
