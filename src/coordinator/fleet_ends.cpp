// The part of the fleet that ends workers and takes their work back.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {
namespace {

// For a worker that was killed to be gone; a device that hangs in its driver may take longer, and
// is killed again.
constexpr Duration kKillAllowance = std::chrono::seconds(1);

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const auto begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

void WorkerFleet::end_worker(WorkerSlot& slot, EndReason why, const std::string& reason,
                             bool is_own_fault) {
  slot.end_reason = why;
  slot.reason = reason;
  slot.slow.reset();
  slot.process->kill();
  slot.end_by = clock_.now() + kKillAllowance;
  sync(slot);
  lose_batches(slot, is_own_fault, reason);
  changed();
}

void WorkerFleet::close_worker(WorkerSlot& slot) {
  slot.end_reason = EndReason::Operator;
  slot.slow.reset();
  slot.process->close();
  slot.end_by = clock_.now() + kKillAllowance;
  sync(slot);
  lose_batches(slot, /*is_own_fault=*/false, "drained");
  changed();
}

void WorkerFleet::lose_batches(WorkerSlot& slot, bool is_own_fault, const std::string& reason) {
  // The oldest `lane_count` batches were running and may be the cause; the rest was only waiting
  // there.
  const auto running_count = std::min<std::size_t>(slot.lane_count, slot.in_flight.size());
  std::size_t at = 0;
  for (auto& lost : std::exchange(slot.in_flight, {})) {
    const bool was_running = at++ < running_count;
    if (!lost.batch) continue;
    if (is_own_fault && was_running) {
      strike(
          slot, std::move(*lost.batch),
          {ErrorKind::Internal, fmt::format("this text alone makes the worker fail: {}", reason)});
    } else {
      give_back(slot, std::move(*lost.batch));
    }
  }
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
  if (failed) fail_item(*failed, error);
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
  const bool was_ready = std::exchange(slot.was_ready, false);
  slot.process->close();
  const auto death = slot.process->reap();
  read_stderr_of(slot);
  reaped_cpu_seconds_ += death.cpu_seconds;
  slot.total.last_words = fmt::format("{}: worker ended with {}{}{}", slot.total.name, death.reason,
                                      slot.process->stderr_tail().empty() ? "" : "; it last said: ",
                                      last_line(slot.process->stderr_tail()));
  slot.process.reset();
  slot.end_by.reset();
  slot.slow.reset();
  slot.is_greeted = slot.is_probing = false;
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
    model.canary_at.reset();
    here = model.is_leaving ? slot.models.erase(here) : std::next(here);
  }
  sync(slot);
  lose_batches(slot, !was_ended && death.is_own_fault, death.reason);
  changed();
  plan_restart(slot, death, was_ready, batch_count);
  return Done{};
}

void WorkerFleet::plan_restart(WorkerSlot& slot, const WorkerDeath& death, bool was_ready,
                               std::size_t batch_count) {
  const auto now = clock_.now();
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
  const auto delay =
      slot.restarts.on_death(now, {.was_ready = was_ready, .is_own_fault = death.is_own_fault});
  if (!delay) {
    slot.is_given_up = true;
    if (events_.on_notice) {
      events_.on_notice(fmt::format("{}; it cannot start and is given up", slot.total.last_words),
                        index_of(slot));
    }
    return;
  }
  slot.restart_at = now + *delay;
  notice(slot,
         fmt::format(
             "worker ended with {}; {} batches wait again, restart {}", death.reason, batch_count,
             *delay == Duration{0} ? "at once" : fmt::format("in {:.1f} s", seconds(*delay))));
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
  slot.reason.clear();
  sync(slot);
  changed();
}

}  // namespace muster
