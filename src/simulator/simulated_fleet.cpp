// A discrete-event simulation: one queue of events ordered by time and then by number, so equal
// times have one order. It calls the scheduler and the coordinator's own rules (feeding, blame,
// silence, restart) and adds only what a machine would add: how long a batch takes and when
// something breaks. After each event the books are checked: no text lost, none twice. An event of a
// worker carries the worker's life and is dropped once that life is over, which saves taking events
// out of the queue.

#include "simulator/simulated_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kViolationsKept = 20;

std::size_t lane_count(const DispatchDevice& state) {
  return static_cast<std::size_t>(std::max<std::uint64_t>(1, state.slot_count / 2));
}

}  // namespace

SimulatedFleet::SimulatedFleet(const SimulationInput& input)
    : input_(input),
      dispatcher_(input.dispatch, input.devices.size()),
      devices_(input.devices.size()),
      texts_(input.texts.size()),
      open_count_(input.texts.size()) {
  if (input.admission) admission_.emplace(*input.admission);
  result_.texts_served.resize(devices_.size());
  result_.busy_seconds.resize(devices_.size());
  for (std::size_t i = 0; i < devices_.size(); ++i) tell(i);
  if (!input.texts.empty()) at(input.texts.front().at, EventKind::Arrival, 0);
  for (std::size_t i = 0; i < input.faults.size(); ++i) {
    at(input.faults[i].at, EventKind::Fault, i);
    has_bad_workers_ |= input.faults[i].kind != SimulatedFaultKind::Killed;
  }
}

// Ends when every text has its fate, or with too many violations: after the first ones the books
// are wrong anyway. Texts that are still open when no event is left are lost.
SimulationResult SimulatedFleet::run() {
  while (open_count_ > 0 && !events_.empty() && result_.violations.size() < kViolationsKept) {
    const auto event = events_.top();
    events_.pop();
    now_ = event.at;
    handle(event);
    feed();
    check_books();
  }
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    if (texts_[i].fate < Fate::Answered) violated(fmt::format("text {} was lost", i));
  }
  return std::move(result_);
}

// A worker that hangs neither serves nor dies by itself: only the check of its silence ends it.
void SimulatedFleet::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::Arrival:
      return on_arrival(event.subject);
    case EventKind::Leaving:
      return on_leaving(event.subject);
    case EventKind::Fault:
      return on_fault(input_.faults[event.subject]);
    default:
      break;
  }
  auto& device = devices_[event.subject];
  if (event.life != device.life) return;
  switch (event.kind) {
    case EventKind::Served:
      if (!device.hangs) on_served(event.subject, event.batch);
      break;
    case EventKind::Death:
      if (!device.hangs) on_death(event.subject, WorkerEnd::Died);
      break;
    case EventKind::Recovery:
      device.slowness = 1;
      break;
    case EventKind::Ready:
      device.is_ready = true;
      tell(event.subject);
      break;
    default:
      on_check(event.subject);
  }
}

// Each arrival puts the next one into the queue, so that the queue holds one of them at a time.
void SimulatedFleet::on_arrival(std::size_t text) {
  const auto& coming = input_.texts[text];
  if (text + 1 < texts_.size()) at(input_.texts[text + 1].at, EventKind::Arrival, text + 1);
  if (admission_) {
    const auto queue = dispatcher_.queue_state(coming.item.model, coming.item.lane);
    const AdmissionRequest request{
        .caller = "", .text_count = 1, .token_estimate = coming.item.token_count};
    if (const auto refused = admission_->ask(request, queue, now_)) {
      if (refused->retry_after < std::chrono::seconds(1)) violated("a retry within a second");
      return end_text(text, Fate::Refused);
    }
    if (queue.queued_texts + 1 > input_.admission->queued_texts_most ||
        queue.outstanding_tokens + coming.item.token_count > input_.admission->queued_tokens_most) {
      violated("admission let in more than may wait");
    }
  }
  texts_[text].fate = Fate::Waiting;
  ++waiting_texts_;
  waiting_tokens_ += coming.item.token_count;
  result_.queued_tokens_peak = std::max(result_.queued_tokens_peak, waiting_tokens_);
  dispatcher_.add(coming.item, now_);
  if (coming.leaves) at(*coming.leaves, EventKind::Leaving, text);
}

// A text that is being computed stays in its batch; its answer is then thrown away.
void SimulatedFleet::on_leaving(std::size_t text) {
  const auto fate = texts_[text].fate;
  if (fate != Fate::Waiting && fate != Fate::Given) return;
  const bool was_waiting = dispatcher_.remove(input_.texts[text].item.key);
  if (was_waiting != (fate == Fate::Waiting)) {
    violated(fmt::format("text {} was not where it was thought to be", text));
  }
  end_text(text, Fate::Cancelled);
}

void SimulatedFleet::on_served(std::size_t device, std::uint64_t batch) {
  auto& flights = devices_[device].flights;
  const auto found = std::find_if(flights.begin(), flights.end(), [&](const Flight& flight) {
    return flight.batch.work.id == batch;
  });
  if (found == flights.end()) return violated("a batch was served that was not there");
  auto flight = std::move(*found);
  flights.erase(found);
  if (devices_[device].fails) return on_batch_failed(device, std::move(flight));
  devices_[device].restarts.on_batch_served();
  devices_[device].blame.on_served();
  dispatcher_.on_served(device, flight.batch, flight.duration);
  result_.busy_seconds[device] += seconds(flight.duration);
  for (const auto& item : flight.batch.work.items) {
    if (texts_[item.key].fate == Fate::Cancelled) continue;
    result_.response_seconds.push_back(seconds(now_ - input_.texts[item.key].at));
    ++result_.texts_served[device];
    end_text(item.key, Fate::Answered);
  }
  result_.end_seconds = seconds(now_ - TimePoint{});
  start_batches(device);
  if (!flights.empty()) plan_check(device);
}

// The canary is answered at once here: what the fleet does while it waits takes no time.
void SimulatedFleet::on_batch_failed(std::size_t device, Flight flight) {
  auto& one = devices_[device];
  drop_cancelled(flight.batch);
  for (const auto& item : flight.batch.work.items) {
    auto& text = texts_[item.key];
    const std::pair worker{device, one.life + 1};
    if (std::exchange(text.failed_in, worker) != worker) ++text.fault_count;
  }
  const bool is_at_fault = one.fails_canaries || one.blame.on_failed();
  if (is_at_fault) {
    return_failed(device, std::move(flight.batch));
    return on_death(device, WorkerEnd::Innocent, /*is_at_fault=*/true);
  }
  try_elsewhere(device, std::move(flight.batch));
  start_batches(device);
  if (!one.flights.empty()) plan_check(device);
}

// A text that failed in several workers is suspected; a batch without such a one is innocent.
void SimulatedFleet::return_failed(std::size_t device, DispatchBatch batch) {
  const auto& items = batch.work.items;
  const bool is_suspected = std::any_of(items.begin(), items.end(), [&](const WorkItem& item) {
    return texts_[item.key].fault_count >= DeviceBlame::kTextFaultsMost;
  });
  if (is_suspected) return settle_strike(device, std::move(batch));
  give_back(device, std::move(batch));
}

void SimulatedFleet::give_back(std::size_t device, DispatchBatch batch) {
  wait_again(batch.work.items);
  dispatcher_.give_back(device, std::move(batch), now_);
}

// Under suspicion a batch is taken apart until the text at fault is alone. A text alone is blamed
// only where another device failed at it before, or this one has served something since.
void SimulatedFleet::try_elsewhere(std::size_t device, DispatchBatch batch) {
  const auto& work = batch.work;
  if (work.strike_count > 0) {
    const bool is_struck_here = work.struck_device == device;
    if (work.items.size() == 1 && !devices_[device].blame.may_blame_text(is_struck_here)) {
      return give_back(device, std::move(batch));
    }
    return settle_strike(device, std::move(batch));
  }
  wait_again(batch.work.items);
  for (const auto& item : batch.work.items) ++texts_[item.key].death_count;
  dispatcher_.retry(device, std::move(batch));
}

// The simulation's own side of a return. Both sides are compared after the event.
void SimulatedFleet::wait_again(const std::vector<WorkItem>& items) {
  for (const auto& item : items) {
    texts_[item.key].fate = Fate::Waiting;
    ++waiting_texts_;
    waiting_tokens_ += item.token_count;
  }
}

// Whether a retry elsewhere is possible at all: without a peer the batch must come back here.
bool SimulatedFleet::has_peer(std::size_t device, ModelId model) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const auto& models = input_.devices[i].state.models;
    const bool has_model = std::find(models.begin(), models.end(), model) != models.end();
    if (i != device && devices_[i].is_ready && has_model) return true;
  }
  return false;
}

// A new life begins at once in the books, so events of the old one no longer count. Batches in
// flight go back by the coordinator's own rule, each as its part in the death deserves.
void SimulatedFleet::on_death(std::size_t device, WorkerEnd end, bool is_at_fault) {
  auto& one = devices_[device];
  ++result_.death_count;
  ++one.life;
  one.is_ready = one.hangs = one.fails = false;
  one.check_at.reset();
  one.slowness = 1;
  one.blame.forget();
  tell(device);
  for (auto& flight : std::exchange(one.flights, {})) {
    drop_cancelled(flight.batch);
    const bool is_suspected = flight.batch.work.strike_count > 0;
    const bool was_running = flight.running_since.has_value();
    switch (fate_of_batch(end, was_running, is_suspected, has_peer(device, flight.batch.model))) {
      case BatchFate::Again:
        give_back(device, std::move(flight.batch));
        break;
      case BatchFate::Apart:
        settle_strike(device, std::move(flight.batch));
        break;
      case BatchFate::Elsewhere:
        try_elsewhere(device, std::move(flight.batch));
        break;
    }
  }
  const auto delay = one.restarts.on_death(
      now_,
      {.was_ready = true, .is_own_fault = end != WorkerEnd::Innocent, .is_at_fault = is_at_fault});
  at(now_ + *delay + input_.devices[device].start_time, EventKind::Ready, device);
}

// The scheduler names the killer, or nobody. The rule is checked from outside: only a text that was
// alone in its last batch and saw at least two deaths may fail.
void SimulatedFleet::settle_strike(std::size_t device, DispatchBatch batch) {
  const auto items = batch.work.items;
  const auto killer = dispatcher_.strike(device, std::move(batch), now_);
  for (const auto& item : items) {
    auto& text = texts_[item.key];
    ++text.death_count;
    if (killer == item.key) {
      if (text.death_count < 2 || items.size() > 1) {
        violated(fmt::format("text {} failed without being alone in a second death", item.key));
      }
      if (!input_.texts[item.key].kills && !has_bad_workers_) {
        violated(fmt::format("text {} failed, and does not kill", item.key));
      }
      end_text(item.key, Fate::Failed);
      continue;
    }
    wait_again({item});
  }
}

void SimulatedFleet::on_fault(const SimulatedFault& fault) {
  auto& device = devices_[fault.device];
  if (!device.is_ready) return;
  switch (fault.kind) {
    case SimulatedFaultKind::Killed:
      return on_death(fault.device, WorkerEnd::Innocent);
    case SimulatedFaultKind::Crashes:
      return on_death(fault.device, WorkerEnd::Died);
    case SimulatedFaultKind::Hangs:
      device.hangs = true;
      return;
    case SimulatedFaultKind::Fails:
    case SimulatedFaultKind::FailsButCanary:
      device.fails = true;
      device.fails_canaries = fault.kind == SimulatedFaultKind::Fails;
      return;
    case SimulatedFaultKind::Slow:
      device.slowness = fault.factor;
      at(now_ + fault.length, EventKind::Recovery, fault.device);
      return;
  }
}

void SimulatedFleet::on_check(std::size_t device) {
  devices_[device].check_at.reset();
  const auto silent = silence(device);
  if (!silent) return;
  if (now_ >= silent->until()) return on_death(device, WorkerEnd::Silent, /*is_at_fault=*/true);
  plan_check(device);
}

// One check at a time and device: an earlier one that is planned plans the next by itself.
void SimulatedFleet::plan_check(std::size_t device) {
  auto& one = devices_[device];
  const auto silent = silence(device);
  if (!silent || (one.check_at && *one.check_at <= silent->until())) return;
  one.check_at = silent->until();
  at(silent->until(), EventKind::Check, device);
}

// The coordinator's own loop, with the simulation's numbers in the place of workers.
void SimulatedFleet::feed() {
  feed_in_turns(
      devices_.size(), [this](std::size_t i) { return devices_[i].flights.size(); },
      [this](std::size_t i) {
        const auto slots = static_cast<std::size_t>(input_.devices[i].state.slot_count);
        return devices_[i].is_ready ? slots : 0;
      },
      [this] { return dispatcher_.queued_text_count() == 0; },
      [this](std::size_t i) {
        auto batch = dispatcher_.cut(i, now_);
        if (!batch) return;
        check_batch(i, *batch);
        devices_[i].flights.push_back({.batch = std::move(*batch)});
        start_batches(i);
        plan_check(i);
      });
}

// A device holds more batches than it runs, as workers do: the first ones of the list run. A batch
// that kills does so half-way through, when its answer is not yet there.
void SimulatedFleet::start_batches(std::size_t device) {
  auto& one = devices_[device];
  const auto lanes = lane_count(input_.devices[device].state);
  for (std::size_t i = 0; i < std::min(lanes, one.flights.size()); ++i) {
    auto& flight = one.flights[i];
    if (flight.running_since) continue;
    flight.running_since = now_;
    flight.duration = cost_of(device, flight.batch);
    const auto id = flight.batch.work.id;
    if (kills(flight.batch)) {
      at(now_ + flight.duration / 2, EventKind::Death, device, id);
    } else {
      at(now_ + flight.duration, EventKind::Served, device, id);
    }
  }
}

void SimulatedFleet::tell(std::size_t device) {
  auto state = input_.devices[device].state;
  state.is_eligible = devices_[device].is_ready;
  dispatcher_.set_device(device, std::move(state), now_);
}

// A device without figures of its own is measured by the slowest peer, which errs on the side of
// waiting.
std::optional<Silence> SimulatedFleet::silence(std::size_t device) const {
  std::optional<Silence> next;
  for (const auto& flight : devices_[device].flights) {
    if (!flight.running_since) continue;
    const auto tokens = flight.batch.work.token_count;
    BatchCost cost{.own = dispatcher_.predict(device, flight.batch.model, tokens)};
    for (std::size_t i = 0; !cost.own && i < devices_.size(); ++i) {
      const auto there = dispatcher_.predict(i, flight.batch.model, tokens);
      if (there && (!cost.peer || *there > *cost.peer)) cost.peer = there;
    }
    next = earlier(next, {*flight.running_since, silence_allowed(cost)});
  }
  return next;
}

// The true cost, which the scheduler never sees: it knows the tokens that texts say they have.
Duration SimulatedFleet::cost_of(std::size_t device, const DispatchBatch& batch) const {
  double tokens = 0;
  for (const auto& item : batch.work.items) {
    tokens += item.token_count * input_.texts[item.key].cost_factor;
  }
  const auto& simulated = input_.devices[device];
  const std::chrono::duration<double> computing(tokens / simulated.tokens_per_second);
  return std::chrono::duration_cast<Duration>(
      (std::chrono::duration<double>(simulated.batch_overhead) + computing) *
      devices_[device].slowness);
}

bool SimulatedFleet::kills(const DispatchBatch& batch) const {
  return std::any_of(batch.work.items.begin(), batch.work.items.end(),
                     [&](const WorkItem& item) { return input_.texts[item.key].kills; });
}

void SimulatedFleet::end_text(std::size_t text, Fate fate) {
  auto& ended = texts_[text];
  if (ended.fate >= Fate::Answered) {
    return violated(fmt::format("text {} was answered, failed or cancelled twice", text));
  }
  if (ended.fate == Fate::Waiting) {
    --waiting_texts_;
    waiting_tokens_ -= input_.texts[text].item.token_count;
  }
  result_.failed_count += fate == Fate::Failed ? 1 : 0;
  result_.refused_count += fate == Fate::Refused ? 1 : 0;
  result_.cancelled_count += fate == Fate::Cancelled ? 1 : 0;
  if (admission_ && fate != Fate::Refused) {
    const auto tokens = input_.texts[text].item.token_count;
    admission_->on_end({.caller = "", .text_count = 1, .token_estimate = tokens}, tokens, now_);
  }
  ended.fate = fate;
  --open_count_;
}

// Before a batch goes back into the queue: a text whose caller has left must not be computed anew.
void SimulatedFleet::drop_cancelled(DispatchBatch& batch) {
  auto& work = batch.work;
  std::erase_if(work.items,
                [&](const WorkItem& item) { return texts_[item.key].fate == Fate::Cancelled; });
  work.token_count = 0;
  for (const auto& item : work.items) work.token_count += item.token_count;
}

void SimulatedFleet::check_batch(std::size_t device, const DispatchBatch& batch) {
  const auto& state = input_.devices[device].state;
  const auto& work = batch.work;
  std::uint64_t tokens = 0;
  for (const auto& item : work.items) {
    const auto& of_item = input_.texts[item.key].item;
    if (texts_[item.key].fate != Fate::Waiting) {
      violated(fmt::format("text {} was given out and did not wait", item.key));
    }
    if (of_item.model != batch.model || of_item.lane != batch.lane) {
      violated(fmt::format("text {} is in a batch of others", item.key));
    }
    texts_[item.key].fate = Fate::Given;
    --waiting_texts_;
    waiting_tokens_ -= item.token_count;
    tokens += item.token_count;
  }
  if (tokens != work.token_count) violated("a batch has other tokens than it says");
  if (tokens > state.token_budget && work.items.size() > 1) violated("a batch is too long");
  if (devices_[device].flights.size() >= state.slot_count)
    violated("a device has too many batches");
  if (std::find(state.models.begin(), state.models.end(), batch.model) == state.models.end()) {
    violated("a device got a batch of a model that it has not");
  }
  if (work.strike_count > 0 && !work.is_retry && work.items.size() > 1) {
    violated("a suspect is not alone");
  }
}

// The scheduler's own counters against what the simulation knows to be true. They are kept by
// increments, which is where a mistake would stay.
void SimulatedFleet::check_books() {
  if (dispatcher_.queued_text_count() != waiting_texts_ ||
      dispatcher_.queued_token_count() != waiting_tokens_) {
    violated(fmt::format("the books say {} texts wait, and {} do", dispatcher_.queued_text_count(),
                         waiting_texts_));
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    std::uint64_t tokens = 0;
    for (const auto& flight : devices_[i].flights) tokens += flight.batch.work.token_count;
    if (dispatcher_.in_flight_token_count(i) != tokens)
      violated("a device has other work than its books say");
    if (!devices_[i].is_ready && dispatcher_.bound_token_count(i) > 0) {
      violated("texts are bound to a device that cannot work");
    }
  }
}

void SimulatedFleet::at(TimePoint time, EventKind kind, std::size_t subject, std::uint64_t batch) {
  const bool is_of_device =
      kind != EventKind::Arrival && kind != EventKind::Leaving && kind != EventKind::Fault;
  events_.push({.at = time,
                .order = next_order_++,
                .kind = kind,
                .subject = subject,
                .life = is_of_device ? devices_[subject].life : 0,
                .batch = batch});
}

void SimulatedFleet::violated(std::string what) {
  if (result_.violations.size() < kViolationsKept) {
    result_.violations.push_back(fmt::format("at {:.6f} s: {}", seconds(now_ - TimePoint{}), what));
  }
}

SimulationResult simulate(const SimulationInput& input) { return SimulatedFleet(input).run(); }

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(std::clamp(std::ceil(share * count), 1.0, count)) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank),
                   values.end());
  return values[rank];
}

}  // namespace muster
