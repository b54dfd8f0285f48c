// How groups that are silent or slow are noticed, and what becomes of them. A silent one is killed,
// on CPUs later while its threads are runnable; a slow one lives, is given no work while its
// canaries are slow, and comes back by them.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "coordinator/worker_supervisor.h"

namespace muster {
namespace {

// Packing the weights of a large model from a cold disk.
constexpr Duration kLoadAllowance = std::chrono::seconds(900);
// A batch on CPUs is allowed as long again where a thread of the worker is runnable when its time
// is over, but no longer than this each time, and so often at most: one that turns in circles is
// runnable as well. At a load of 7 on two cores a worker that was well was killed for 1.0 s of
// silence, where 1.0 s were allowed.
constexpr Duration kExtensionMost = std::chrono::seconds(15);
constexpr std::uint32_t kExtensionsMost = 4;

/// Its new worker has loaded what it could.
std::string why_it_is_back(ModelsTogether models) {
  switch (models) {
    case ModelsTogether::Failed:
      return "its new worker cannot load a model, and waits to be started again";
    case ModelsTogether::Full:
      return "its new worker has no memory for a model, and tries again";
    case ModelsTogether::None:
    case ModelsTogether::Coming:
    case ModelsTogether::Ready:
      break;
  }
  return "its new worker answers as it should";
}

}  // namespace

std::optional<Silence> WorkerSupervisor::silence(std::size_t index) const {
  const auto& group = groups_[index];
  const auto& life = group.life;
  if (!life.is_alive()) return std::nullopt;
  if (!life.is_greeted) {
    return Silence{life.last_sign,
                   greeting_allowed(longest_greeting_, group.health.restarts.failed_start_count())};
  }
  if (life.is_probing) return Silence{life.last_sign, kLoadAllowance};
  // A slow device in quarantine is given its time, and started again when that is over.
  if (group.health.slow) return std::nullopt;
  std::optional<Silence> next;
  if (parts_.models.is_loading(index)) next = Silence{life.last_sign, kLoadAllowance};
  for (const auto& frame : group.sent.all()) {
    if (!frame.running_since) continue;
    next = earlier(next, batch_silence(index, frame));
  }
  return next;
}

Silence WorkerSupervisor::batch_silence(std::size_t index, const SentFrame& frame) const {
  const auto usual = batch_allowance(index, frame);
  const auto more = std::min(usual, kExtensionMost) * frame.extension_count;
  // A prediction may be hours.
  return {*frame.running_since, usual > Duration::max() - more ? usual : usual + more};
}

// Any of its threads: which of them computes which batch is not known here.
bool WorkerSupervisor::extend_silence(std::size_t index, TimePoint now) {
  auto& group = groups_[index];
  const auto& life = group.life;
  if (life.leader().kind != DeviceKind::Cpu || !life.is_greeted || life.is_probing) return false;
  if (parts_.models.is_loading(index)) return false;
  const auto is_late = [&](const SentFrame& frame) {
    const auto silent = batch_silence(index, frame);
    return now - silent.since > silent.allowed;
  };
  std::vector<SentFrame> late;
  for (const auto& frame : group.sent.all()) {
    if (!frame.running_since || !is_late(frame)) continue;
    if (frame.kind != FrameKind::Batch) return false;
    late.push_back(frame);
  }
  if (std::none_of(group.pids.begin(), group.pids.end(), parts_.is_runnable)) return false;
  for (auto& frame : late) {
    const bool is_first = frame.extension_count == 0;
    while (is_late(frame)) {
      if (++frame.extension_count > kExtensionsMost) return false;
      group.sent.extend(frame.id);
    }
    if (is_first) {
      notice(index, fmt::format("no sign of life for {:.1f} s, but its threads are runnable: the "
                                "machine may be short of CPUs; it has more time",
                                seconds(now - *frame.running_since)));
    }
  }
  return !late.empty();
}

Duration WorkerSupervisor::batch_allowance(std::size_t index, const SentFrame& frame) const {
  const auto& group = groups_[index];
  const auto own = parts_.client.predict(index, frame.model, frame.token_count);
  BatchCost cost{.own = own,
                 .canary = group.health.speed.predict(frame.model, frame.token_count),
                 .peer = std::nullopt,
                 .longest_text = frame.longest_text,
                 .is_beside_load = parts_.models.is_loading(index)};
  for (std::size_t i = 0; !own && i < groups_.size(); ++i) {
    if (groups_[i].life.engine_class != group.life.engine_class) continue;
    const auto there = parts_.client.predict(i, frame.model, frame.token_count);
    if (there && (!cost.peer || *there > *cost.peer)) cost.peer = there;
  }
  return silence_allowed(cost);
}

void WorkerSupervisor::check_silence(std::size_t index, TimePoint now) {
  const auto silent = silence(index);
  if (!silent || now - silent->since <= silent->allowed) return;
  if (extend_silence(index, now)) return;
  notice(index,
         fmt::format("no sign of life for {:.1f} s, where {:.1f} s are allowed; it is killed",
                     seconds(now - silent->since), seconds(silent->allowed)));
  const auto reason = fmt::format("no answer in {:.1f} s", seconds(silent->allowed));
  auto& life = groups_[index].life;
  life.is_at_fault = life.was_ready;
  if (life.was_ready) quarantine(index, reason);
  end_group(index, EndReason::Health, reason, WorkerEnd::Silent);
}

void WorkerSupervisor::quarantine(std::size_t index, const std::string& reason) {
  auto& life = groups_[index].life;
  life.reason = reason;
  if (!life.is_quarantined) {
    life.is_quarantined = true;
    ++life.quarantine_count;
    notice(index, fmt::format("quarantined: {}", reason));
  }
  parts_.client.on_state(index);
  parts_.signal.change();
}

// Also the last group of a model, and also one whose canary is right: what such a device computes
// may be wrong all the same.
void WorkerSupervisor::set_fault(std::size_t index, const std::optional<std::string>& fault) {
  auto& life = groups_[index].life;
  if (life.is_given_up) return;
  const auto before = std::exchange(life.fault, fault);
  if (!fault && !before) return;
  if (life.goal == GroupGoal::Drain) return show_fault_of_drained(index);
  if (!fault) {
    life.reason = "the fault is over: " + *before;
    return start_after_fault(index);
  }
  if (options_.gives_up) return give_up(index, *fault);
  life.restart_at.reset();
  life.goal = GroupGoal::Serve;
  life.is_asked_for = false;
  if (before) {
    notice(index, *fault);  // it is quarantined, and for more than was said
  } else {
    life.is_quarantined = life.was_slow = false;  // this is another reason
  }
  quarantine(index, *fault);
  if (life.is_alive()) end_group(index, EndReason::Health, *fault, WorkerEnd::Innocent);
}

// It rests in any case; who resumes it starts it in spite of the fault, and shall know of it.
void WorkerSupervisor::show_fault_of_drained(std::size_t index) {
  auto& life = groups_[index].life;
  if (life.fault) {
    notice(index, *life.fault);
    if (life.is_alive()) {
      end_group(index, EndReason::Health, std::string(*life.fault), WorkerEnd::Innocent);
    }
  }
  life.reason = life.drained_reason();
  parts_.signal.change();
}

// Those that have not ended yet start again when they have. It stays quarantined until its new
// worker answers.
void WorkerSupervisor::start_after_fault(std::size_t index) {
  auto& life = groups_[index].life;
  life.fault.reset();
  if (!life.has_processes && !life.is_idle) life.restart_at = parts_.clock.now();
  parts_.signal.change();
}

bool WorkerSupervisor::has_stand_in(std::size_t index, bool must_be_fast) const {
  // One for each of its models: nothing may be left without a device.
  const auto& models = parts_.models.on(index);
  return std::all_of(models.begin(), models.end(), [&](const auto& entry) {
    if (!entry.second.takes_work()) return true;
    for (std::size_t peer = 0; peer < groups_.size(); ++peer) {
      const auto* there = parts_.models.find(peer, entry.first);
      if (peer == index || there == nullptr || !there->takes_work()) continue;
      if (must_be_fast && groups_[peer].health.speed.looks_slow()) continue;
      if (parts_.client.is_eligible(peer)) return true;
    }
    return false;
  });
}

void WorkerSupervisor::check_slowness(std::size_t index, TimePoint now) {
  auto& group = groups_[index];
  if (!parts_.client.is_eligible(index)) return;
  if (!group.health.speed.is_slow(group.sent.running_for(now))) return;
  const bool can_return = parts_.models.has_ready_canary(index);
  if (!can_return || !has_stand_in(index, /*must_be_fast=*/true)) return;
  quarantine(index, "its batches take more than 5 times as long as they did");
  group.health.slow.emplace(now);
  group.life.was_slow = true;
  group.health.speed.forget_slowness();
  // Others do what it has; what it still answers is nobody's.
  parts_.client.on_lost(index, {.end = WorkerEnd::Innocent, .reason = group.life.reason});
}

void WorkerSupervisor::watch_quarantine(std::size_t index, TimePoint now) {
  auto& group = groups_[index];
  const auto& life = group.life;
  if (!life.is_quarantined || !life.is_alive()) return;
  if (group.health.slow) {
    if (now < group.health.slow->restart_at()) return;
    notice(index, "still slow after 10 s; it is started again");
    end_group(index, EndReason::Health, std::string(life.reason), WorkerEnd::Innocent);
    return;
  }
  const bool is_settled = life.is_greeted && parts_.models.has_settled_models(index);
  if (!is_settled) return;
  // It has not proved that it is fast again before it has loaded a model.
  const auto models = parts_.models.together(index);
  if (life.was_slow && models == ModelsTogether::Full) return;
  if (life.was_slow && parts_.models.has_ready_model(index)) {
    group.health.slow.emplace(now);
  } else {
    end_quarantine(index, why_it_is_back(models));
  }
}

void WorkerSupervisor::on_right_canary(std::size_t group, bool is_in_time) {
  auto& slow = groups_[group].health.slow;
  if (slow && slow->on_canary(parts_.clock.now(), is_in_time)) {
    end_quarantine(group, "two canaries in a row were right and in time");
  }
}

void WorkerSupervisor::end_quarantine(std::size_t index, const std::string& why) {
  auto& group = groups_[index];
  group.life.is_quarantined = group.life.was_slow = false;
  group.health.slow.reset();
  group.life.reason.clear();
  group.health.speed.forget_slowness();
  // Of what was given away there may be something left to answer; it is judged from now on.
  group.sent.restart_clocks(parts_.clock.now());
  notice(index, fmt::format("back from quarantine: {}", why));
  parts_.client.on_state(index);
  parts_.signal.change();
}

void WorkerSupervisor::release_last() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& group = groups_[i];
    if (!group.health.slow || !group.life.is_alive()) continue;
    if (!parts_.models.has_ready_model(i)) continue;
    if (!has_stand_in(i, /*must_be_fast=*/false)) {
      end_quarantine(i, "no other device is left for its models");
    }
  }
}

TimePoint WorkerSupervisor::next_deadline(TimePoint now) const {
  auto deadline = TimePoint::max();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    deadline = std::min(deadline, group_deadline(i, now));
  }
  return deadline;
}

TimePoint WorkerSupervisor::group_deadline(std::size_t index, TimePoint now) const {
  const auto& [life, sent, health, pids, greeted, started_at, load_count, loading_since] =
      groups_[index];
  auto deadline = TimePoint::max();
  const auto by = [&deadline](TimePoint at) { deadline = std::min(deadline, at); };
  if (life.restart_at) by(*life.restart_at);
  if (!life.has_processes) return deadline;
  if (life.end_by) by(*life.end_by);
  if (!life.is_alive()) return deadline;
  if (const auto silent = silence(index)) by(silent->until());
  if (life.goal != GroupGoal::Serve) by(life.drain_until);
  if (health.slow) {
    by(health.slow->restart_at());  // its canaries: ModelRegistry
  } else if (!sent.empty() && parts_.client.is_eligible(index)) {
    const auto left = health.speed.slow_in(sent.running_for(now));
    if (left && *left > Duration{0}) by(now + *left);
  }
  return deadline;
}

}  // namespace muster
