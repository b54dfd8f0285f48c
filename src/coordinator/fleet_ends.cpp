// The part of the fleet that ends workers and takes their work back.

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {
namespace {

// For a worker that was killed to be gone; a device that hangs in its driver may take longer, and
// is killed again.
constexpr Duration kKillAllowance = std::chrono::seconds(1);

// Until it is told that a killed worker does not end. A driver that resets a device holds the
// processes on it for seconds.
constexpr Duration kStuckAllowance = std::chrono::seconds(10);

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const auto begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

void WorkerFleet::end_worker(WorkerSlot& slot, EndReason why, const std::string& reason,
                             WorkerEnd end) {
  slot.end_reason = why;
  slot.reason = reason;
  slot.slow.reset();
  slot.process->kill();
  slot.end_by = clock_.now() + kKillAllowance;
  sync(slot);
  lose_batches(slot, end, reason);
  changed();
}

void WorkerFleet::close_worker(WorkerSlot& slot) {
  slot.end_reason = EndReason::Operator;
  slot.slow.reset();
  slot.process->close();
  slot.end_by = clock_.now() + kKillAllowance;
  sync(slot);
  lose_batches(slot, WorkerEnd::Innocent, "drained");
  changed();
}

void WorkerFleet::lose_batches(WorkerSlot& slot, WorkerEnd end, const std::string& reason) {
  // One that failed at a batch just before it ended was breaking: what else it ran is innocent.
  if (slot.accusation) {
    end = WorkerEnd::Innocent;
    auto accused = *std::exchange(slot.accusation, std::nullopt);
    return_failed(slot, std::move(accused.batch), accused.error);
  }
  // The oldest `lane_count` batches were running and may be the cause; the rest was only waiting
  // there.
  const auto running_count = std::min<std::size_t>(slot.lane_count, slot.in_flight.size());
  std::size_t at = 0;
  for (auto& lost : std::exchange(slot.in_flight, {})) {
    const bool was_running = at++ < running_count;
    if (!lost.batch) continue;
    const Error error{ErrorKind::Internal,
                      fmt::format("this text alone makes the worker fail: {}", reason)};
    const bool is_suspected = lost.batch->work.strike_count > 0;
    switch (fate_of_batch(end, was_running, is_suspected, has_peer(slot, lost.model))) {
      case BatchFate::Again:
        give_back(slot, std::move(*lost.batch));
        break;
      case BatchFate::Apart:
        strike(slot, std::move(*lost.batch), error);
        break;
      case BatchFate::Elsewhere:
        try_elsewhere(slot, std::move(*lost.batch), error);
        break;
    }
  }
}

bool WorkerFleet::has_peer(const WorkerSlot& slot, ModelId model) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const WorkerSlot& peer) {
    const auto there = peer.models.find(model);
    return &peer != &slot && peer.is_eligible() && there != peer.models.end() &&
           there->second.status.state == ModelState::Ready;
  });
}

void WorkerFleet::give_back(WorkerSlot& slot, DispatchBatch batch) {
  const auto items = batch.work.items;
  const auto model = batch.model;
  dispatcher_.give_back(index_of(slot), std::move(batch), clock_.now());
  after_return(items, model);
}

void WorkerFleet::strike(WorkerSlot& slot, DispatchBatch batch, const Error& error) {
  const auto items = batch.work.items;
  const auto model = batch.model;
  const auto failed = dispatcher_.strike(index_of(slot), std::move(batch), clock_.now());
  after_return(items, model);
  if (!failed) return;
  for (auto& other : slots_) other.restarts.on_text_found();
  fail_item(*failed, error);
}

// What nobody waits for any more does not wait either.
void WorkerFleet::after_return(const std::vector<WorkItem>& items, ModelId model) {
  const bool is_served = models_.count(model) > 0;
  for (const auto& item : items) {
    const bool is_wanted = texts_.count(item.key) > 0;
    if (is_wanted && is_served) continue;
    dispatcher_.remove(item.key);
    if (is_wanted) fail_item(item.key, {ErrorKind::NotFound, "the model was unloaded"});
  }
}

Status WorkerFleet::on_worker_end(WorkerSlot& slot) {
  const auto reaped = slot.process->reap(Duration{0});
  if (reaped) {
    end_life(slot, *reaped);
  } else {
    // It has ended, and another process that traces it has not let it go: asked for again then.
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, slot.process->exit_fd(), nullptr);
    if (!slot.end_by) slot.end_by = clock_.now() + kKillAllowance;
    sync(slot);
  }
  return Done{};
}

// A worker that was killed is asked for again and again; one that a call holds in the kernel may
// stay for hours.
void WorkerFleet::kill_again(WorkerSlot& slot, TimePoint now) {
  if (auto reaped = slot.process->reap(Duration{0})) return end_life(slot, *reaped);
  slot.process->kill();
  slot.end_by = now + kKillAllowance;
  // One that ended by itself still has its texts: they do not wait until it can be waited for.
  if (!slot.in_flight.empty() || slot.accusation) {
    const bool was_ended = slot.end_reason != EndReason::None;
    lose_batches(slot, was_ended ? WorkerEnd::Innocent : WorkerEnd::Silent,
                 "its worker does not end");
  }
  if (!slot.stuck_since) slot.stuck_since = now;
  const bool is_stuck = now - *slot.stuck_since >= kStuckAllowance;
  if (!is_stuck || std::exchange(slot.is_stuck, true)) return;
  const auto reason = fmt::format(
      "its worker, process {}, was killed and does not end: a call into "
      "the driver holds it",
      slot.process->pid());
  if (options_.gives_up) return give_up(slot, reason);
  slot.reason = reason;
  notice(slot, fmt::format("{}; the device waits for its end", reason));
  changed();
}

void WorkerFleet::end_life(WorkerSlot& slot, const WorkerDeath& death) {
  const bool was_ready = std::exchange(slot.was_ready, false);
  slot.process->close();
  read_stderr_of(slot);
  reaped_cpu_seconds_ += death.cpu_seconds;
  slot.total.last_words = fmt::format("{}: worker ended with {}{}{}", slot.total.name, death.reason,
                                      slot.process->stderr_tail().empty() ? "" : "; it last said: ",
                                      last_line(slot.process->stderr_tail()));
  slot.process.reset();
  slot.end_by.reset();
  slot.stuck_since.reset();
  slot.is_stuck = false;
  slot.slow.reset();
  slot.is_greeted = slot.is_probing = false;
  slot.blame.forget();
  const auto batch_count = slot.in_flight.size();
  const bool was_ended = slot.end_reason != EndReason::None;
  if (!was_ended && !slot.is_quarantined) {
    slot.reason = slot.total.last_words.substr(slot.total.name.size() + 2);
  }
  for (auto here = slot.models.begin(); here != slot.models.end();) {
    answer_checks(index_of(slot), here->first, false, "its worker ended", std::nullopt);
    auto& model = here->second;
    model.status.state = ModelState::Absent;
    model.awaits_canary = false;
    model.trial.reset();
    model.canary_at.reset();
    here = model.is_leaving ? slot.models.erase(here) : std::next(here);
  }
  sync(slot);
  const bool is_own_fault = !was_ended && death.is_own_fault;
  lose_batches(slot, is_own_fault ? WorkerEnd::Died : WorkerEnd::Innocent, death.reason);
  changed();
  plan_restart(slot, death, was_ready, batch_count);
}

void WorkerFleet::plan_restart(WorkerSlot& slot, const WorkerDeath& death, bool was_ready,
                               std::size_t batch_count) {
  const auto now = clock_.now();
  const bool is_at_fault = std::exchange(slot.is_at_fault, false);
  if (slot.is_given_up) return;
  if (slot.goal == Goal::Drain) {
    slot.reason = "drained";
    return;
  }
  if (slot.goal == Goal::Restart) {
    slot.goal = Goal::Serve;
    slot.reason = "started again by an operator";
    slot.restart_at = now;
    return;
  }
  slot.is_asked_for = false;
  const auto delay = slot.restarts.on_death(
      now,
      {.was_ready = was_ready, .is_own_fault = death.is_own_fault, .is_at_fault = is_at_fault});
  if (!delay) return give_up(slot, slot.reason);
  slot.restart_at = now + *delay;
  notice(slot,
         fmt::format(
             "worker ended with {}; {} batches wait again, restart {}", death.reason, batch_count,
             *delay == Duration{0} ? "at once" : fmt::format("in {:.1f} s", seconds(*delay))));
}

void WorkerFleet::give_up(WorkerSlot& slot, const std::string& reason) {
  slot.is_given_up = true;
  slot.is_quarantined = false;
  slot.restart_at.reset();
  notice(slot, fmt::format("{}; it is given up", reason));
  if (slot.is_alive()) close_worker(slot);
  slot.reason = reason;
  changed();
}

void WorkerFleet::drain_step(WorkerSlot& slot, TimePoint now) {
  if (slot.goal == Goal::Serve || !slot.is_alive()) return;
  const bool is_idle = slot.in_flight.empty() && !slot.is_probing;
  if (is_idle || now >= slot.drain_until) close_worker(slot);
}

void WorkerFleet::drain(std::size_t device) {
  auto& slot = slots_.at(device);
  if (slot.is_given_up || slot.goal == Goal::Drain) return;
  slot.goal = Goal::Drain;
  begin_drain(slot);
}

void WorkerFleet::restart(std::size_t device) {
  auto& slot = slots_.at(device);
  if (slot.goal == Goal::Drain) {
    resume(device);
    return;
  }
  if (slot.is_given_up || slot.goal == Goal::Restart) return;
  // One that is not running anyway is started now, without its back-off.
  if (slot.restart_at) {
    slot.restart_at = clock_.now();
    changed();
    return;
  }
  slot.goal = Goal::Restart;
  begin_drain(slot);
}

void WorkerFleet::begin_drain(WorkerSlot& slot) {
  slot.drain_until = clock_.now() + options_.drain_limit;
  if (!slot.process) slot.restart_at.reset();
  slot.is_quarantined = false;
  slot.was_slow = false;
  slot.is_asked_for = true;
  slot.reason = slot.goal == Goal::Drain ? "drained" : "started again by an operator";
  sync(slot);
  changed();
}

void WorkerFleet::resume(std::size_t device) {
  auto& slot = slots_.at(device);
  if (slot.goal != Goal::Drain) return;
  if (slot.end_by) {
    // It ends already: it starts again when it has ended.
    slot.goal = Goal::Restart;
  } else {
    slot.goal = Goal::Serve;
    if (!slot.process) slot.restart_at = clock_.now();
  }
  slot.is_asked_for = true;
  slot.reason.clear();
  sync(slot);
  changed();
}

}  // namespace muster
