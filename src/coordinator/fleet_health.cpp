// The part of the fleet that notices silent and slow workers.

#include <fmt/format.h>

#include <algorithm>

#include "coordinator/worker_fleet.h"

namespace muster {
namespace {

// A worker links torch and greets in under half a second; a cold disk may take far longer.
constexpr Duration kStartAllowance = std::chrono::seconds(120);
// Packing the weights of a large model from a cold disk.
constexpr Duration kLoadAllowance = std::chrono::seconds(900);

}  // namespace

std::optional<Silence> WorkerFleet::silence(const WorkerSlot& slot) const {
  if (!slot.is_alive()) return std::nullopt;
  if (!slot.is_greeted) return Silence{slot.last_sign, kStartAllowance};
  if (slot.is_probing) return Silence{slot.last_sign, kLoadAllowance};
  // A slow device in quarantine is given its time, and started again when that is over.
  if (slot.slow) return std::nullopt;
  std::optional<Silence> next;
  if (slot.is_loading()) next = Silence{slot.last_sign, kLoadAllowance};
  for (const auto& sent : slot.in_flight) {
    if (!sent.running_since) continue;
    next = earlier(next, {*sent.running_since, batch_allowance(slot, sent)});
  }
  return next;
}

Duration WorkerFleet::batch_allowance(const WorkerSlot& slot, const InFlight& sent) const {
  const auto own = dispatcher_.predict(index_of(slot), sent.model, sent.token_count);
  BatchCost cost{.own = own,
                 .canary = slot.health.predict(sent.model, sent.token_count),
                 .peer = std::nullopt,
                 .is_beside_load = slot.is_loading()};
  for (std::size_t i = 0; !own && i < slots_.size(); ++i) {
    if (slots_[i].engine_class != slot.engine_class) continue;
    const auto there = dispatcher_.predict(i, sent.model, sent.token_count);
    if (there && (!cost.peer || *there > *cost.peer)) cost.peer = there;
  }
  return silence_allowed(cost);
}

void WorkerFleet::judge_from_now(WorkerSlot& slot) {
  for (auto& sent : slot.in_flight) {
    if (sent.running_since) sent.running_since = clock_.now();
  }
}

void WorkerFleet::check_silence(WorkerSlot& slot, TimePoint now) {
  const auto silent = silence(slot);
  if (!silent || now - silent->since <= silent->allowed) return;
  notice(slot, fmt::format("no sign of life for {:.1f} s, where {:.1f} s are allowed; it is killed",
                           seconds(now - silent->since), seconds(silent->allowed)));
  const auto reason = fmt::format("no answer in {:.1f} s", seconds(silent->allowed));
  slot.is_at_fault = slot.was_ready;
  if (slot.was_ready) quarantine(slot, reason);
  end_worker(slot, EndReason::Health, reason, WorkerEnd::Silent);
}

void WorkerFleet::quarantine(WorkerSlot& slot, const std::string& reason) {
  slot.reason = reason;
  if (!slot.is_quarantined) {
    slot.is_quarantined = true;
    ++slot.total.quarantine_count;
    notice(slot, fmt::format("quarantined: {}", reason));
  }
  sync(slot);
  changed();
}

bool WorkerFleet::has_well_peer(const WorkerSlot& slot, bool must_be_fast) const {
  // One for each of its models: nothing may be left without a device.
  return std::all_of(slot.models.begin(), slot.models.end(), [&](const auto& entry) {
    if (entry.second.status.state != ModelState::Ready || entry.second.is_leaving) return true;
    return std::any_of(slots_.begin(), slots_.end(), [&](const WorkerSlot& peer) {
      const auto there = peer.models.find(entry.first);
      return &peer != &slot && peer.is_eligible() && there != peer.models.end() &&
             there->second.status.state == ModelState::Ready && !there->second.is_leaving &&
             !(must_be_fast && peer.health.looks_slow());
    });
  });
}

void WorkerFleet::check_slowness(WorkerSlot& slot, TimePoint now) {
  if (!slot.is_eligible() || !slot.health.is_slow(slot.running(now))) return;
  const bool can_return =
      std::any_of(slot.models.begin(), slot.models.end(), [this](const auto& entry) {
        return entry.second.status.state == ModelState::Ready && has_canary(entry.first);
      });
  if (!can_return || !has_well_peer(slot, /*must_be_fast=*/true)) return;
  quarantine(slot, "its batches take more than 5 times as long as they did");
  slot.slow.emplace(now);
  slot.was_slow = true;
  slot.health.forget_slowness();
  // Others do what it has; what it still answers is nobody's.
  for (auto& sent : slot.in_flight) {
    if (sent.batch) give_back(slot, *std::exchange(sent.batch, std::nullopt));
  }
}

void WorkerFleet::watch_quarantine(WorkerSlot& slot, TimePoint now) {
  if (!slot.is_quarantined || !slot.is_alive()) return;
  if (slot.slow) {
    if (now < slot.slow->restart_at()) return;
    notice(slot, "still slow after 10 s; it is started again");
    end_worker(slot, EndReason::Health, slot.reason, WorkerEnd::Innocent);
    return;
  }
  const bool is_settled = slot.is_greeted && slot.has_settled_models();
  if (!is_settled) return;
  if (slot.was_slow && slot.has_ready_model()) {
    slot.slow.emplace(now);
  } else {
    end_quarantine(slot, "its new worker answers as it should");
  }
}

void WorkerFleet::end_quarantine(WorkerSlot& slot, const std::string& why) {
  slot.is_quarantined = slot.was_slow = false;
  slot.slow.reset();
  slot.reason.clear();
  slot.health.forget_slowness();
  // Of what was given away there may be something left to answer; it is judged from now on.
  judge_from_now(slot);
  notice(slot, fmt::format("back from quarantine: {}", why));
  sync(slot);
  changed();
}

void WorkerFleet::release_last() {
  for (auto& slot : slots_) {
    if (!slot.slow || !slot.is_alive() || !slot.has_ready_model()) continue;
    if (!has_well_peer(slot, /*must_be_fast=*/false)) {
      end_quarantine(slot, "no other device is left for its models");
    }
  }
}

TimePoint WorkerFleet::slot_deadline(const WorkerSlot& slot, TimePoint now) const {
  auto deadline = TimePoint::max();
  const auto by = [&deadline](TimePoint at) { deadline = std::min(deadline, at); };
  if (slot.restart_at) by(*slot.restart_at);
  if (!slot.process) return deadline;
  if (slot.end_by) by(*slot.end_by);
  if (!slot.is_alive()) return deadline;
  if (const auto silent = silence(slot)) by(silent->since + silent->allowed);
  if (slot.goal != Goal::Serve) by(slot.drain_until);
  if (slot.slow) {
    by(slot.slow->restart_at());
    by(std::max(now, slot.slow->canary_at()));
  } else if (slot.is_eligible() && !slot.in_flight.empty()) {
    if (const auto left = slot.health.slow_in(slot.running(now))) {
      if (*left > Duration{0}) by(now + *left);
    }
  }
  for (const auto& [id, here] : slot.models) {
    if (here.canary_at && slot.has_room() && !slot.has_canary_in_flight(id)) by(*here.canary_at);
  }
  return deadline;
}

}  // namespace muster
