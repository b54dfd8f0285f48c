// The part of the fleet that owns the texts and gives them to workers.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {

void WorkerFleet::submit(FleetItem item) {
  const auto key = item.item.key;
  const auto model = item.item.model;
  is_awake_ |= !is_in_step_;
  if (models_.count(model) == 0) {
    refused_.emplace_back(key, Error{ErrorKind::NotFound, "no such model is loaded"});
    return;
  }
  bool can_any = false;
  for (const auto& slot : slots_) {
    const auto here = slot.models.find(model);
    can_any |= here != slot.models.end() && here->second.status.state != ModelState::Failed;
  }
  if (!can_any) {
    refused_.emplace_back(key, Error{ErrorKind::Unavailable, "the model cannot be loaded"});
    return;
  }
  dispatcher_.add(item.item, clock_.now());
  texts_.emplace(key, Text{.item = std::move(item), .not_finite_on = std::nullopt});
}

void WorkerFleet::expect() {
  const auto now = clock_.now();
  if (slots_.empty() || !texts_.empty() || now - expected_at_ < kExpectTime) return;
  auto& slot = slots_[last_fed_];
  if (!slot.is_eligible() || !slot.in_flight.empty()) return;
  if (slot.process->channel().wants_write()) return;  // it does not even read
  expected_at_ = now;
  send(slot, MessageType::Expect, 0, {});
}

void WorkerFleet::lift(ItemKey key, FlowId flow) {
  is_awake_ |= !is_in_step_;
  dispatcher_.lift(key, flow, clock_.now());
}

bool WorkerFleet::cancel(ItemKey key) {
  const auto refused = std::find_if(refused_.begin(), refused_.end(),
                                    [key](const auto& entry) { return entry.first == key; });
  if (refused != refused_.end()) {
    refused_.erase(refused);
    return true;
  }
  if (texts_.erase(key) == 0) return false;
  // One that is with a device comes back to nobody.
  dispatcher_.remove(key);
  return true;
}

void WorkerFleet::deliver_refusals() {
  // One at a time: whoever hears of it may submit or cancel others.
  for (auto count = refused_.size(); count > 0 && !refused_.empty(); --count) {
    const auto [key, error] = std::move(refused_.front());
    refused_.erase(refused_.begin());
    events_.on_item_failed(key, error);
  }
}

void WorkerFleet::fail_item(ItemKey key, const Error& error) {
  if (texts_.erase(key) > 0) events_.on_item_failed(key, error);
}

void WorkerFleet::fail_waiting(ModelId model, const Error& error) {
  std::vector<ItemKey> waiting;
  for (const auto& [key, text] : texts_) {
    if (text.item.item.model == model && dispatcher_.remove(key)) waiting.push_back(key);
  }
  std::sort(waiting.begin(), waiting.end());
  for (const auto key : waiting) fail_item(key, error);
}

void WorkerFleet::feed() {
  feed_in_turns(
      slots_.size(), [this](std::size_t i) { return slots_[i].in_flight.size(); },
      [this](std::size_t i) { return slots_[i].is_eligible() ? slots_[i].slot_count() : 0; },
      [this] { return dispatcher_.queued_text_count() == 0; },
      [this](std::size_t i) {
        auto batch = dispatcher_.cut(i, clock_.now());
        if (batch) send_batch(slots_[i], std::move(*batch));
      });
}

void WorkerFleet::send_batch(WorkerSlot& slot, DispatchBatch batch) {
  Batch message;
  message.model_id = batch.model;
  message.lengths.reserve(batch.work.items.size());
  message.ids.reserve(batch.work.token_count);
  bool has_pairs = false;
  for (const auto& item : batch.work.items) {
    const auto& text = texts_.at(item.key).item;
    message.lengths.push_back(static_cast<std::uint32_t>(text.ids.size()));
    message.ids.insert(message.ids.end(), text.ids.begin(), text.ids.end());
    message.first_segments.push_back(text.first_segment);
    has_pairs |= text.first_segment != 0;
  }
  if (!has_pairs) message.first_segments.clear();
  const auto frame = next_frame_++;
  slot.in_flight.push_back({.frame = frame,
                            .batch = std::move(batch),
                            .model = message.model_id,
                            .text_count = message.lengths.size(),
                            .token_count = message.ids.size(),
                            .sent_at = clock_.now(),
                            .running_since = std::nullopt});
  refresh_running(slot);
  send(slot, MessageType::Batch, frame, encode(message));
  last_fed_ = index_of(slot);
}

void WorkerFleet::send(WorkerSlot& slot, MessageType type, std::uint64_t id,
                       std::vector<std::byte> payload) {
  // A failed send means a dead worker: the end of its stream is handled by the next step.
  (void)slot.process->channel().send(static_cast<std::uint8_t>(type), id, std::move(payload));
}

void WorkerFleet::refresh_running(WorkerSlot& slot) {
  const auto running = std::min<std::size_t>(slot.lane_count, slot.in_flight.size());
  for (std::size_t i = 0; i < running; ++i) {
    auto& since = slot.in_flight[i].running_since;
    if (!since) since = clock_.now();
  }
}

void WorkerFleet::sync(WorkerSlot& slot) {
  auto state = slot.readings;
  state.is_eligible = slot.is_eligible();
  state.slot_count = slot.slot_count();
  state.token_budget = slot.budget.now();
  state.weight = slot.weight;
  state.models.clear();
  state.coming.clear();
  const bool is_starting = slot.state() == FleetState::Starting;
  for (const auto& [id, here] : slot.models) {
    const bool is_ready = here.status.state == ModelState::Ready;
    if (is_ready && !here.is_leaving) state.models.push_back(id);
    if (is_starting && !is_ready) state.coming.push_back(id);
  }
  dispatcher_.set_device(index_of(slot), std::move(state), clock_.now());
}

void WorkerFleet::set_readings(std::size_t device, const DispatchDevice& readings) {
  auto& slot = slots_.at(device);
  slot.readings = readings;
  sync(slot);
  if (dispatcher_.queued_text_count() > 0) wake();
}

void WorkerFleet::set_dispatch(DispatchOptions options) {
  dispatcher_.set_options(std::move(options));
  wake();
}

bool WorkerFleet::is_hungry() const {
  if (dispatcher_.queued_text_count() > 0) return false;
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const WorkerSlot& slot) { return slot.is_eligible() && slot.has_room(); });
}

std::vector<FleetDeviceStatus> WorkerFleet::status() const {
  std::vector<FleetDeviceStatus> all;
  for (const auto& slot : slots_) {
    auto& status = all.emplace_back(slot.total);
    status.state = slot.state();
    status.reason = slot.reason;
    status.is_to_rest = slot.goal == Goal::Drain;
    status.is_failing = slot.is_failing();
    status.is_asked_for = slot.is_asked_for;
    if (slot.process) status.pid = slot.process->pid();
    status.engine_class = slot.engine_class;
    status.lane_count = slot.lane_count;
    for (const auto& [id, here] : slot.models) {
      status.models.emplace(id, here.status);
      const bool has_failed = here.status.state == ModelState::Failed;
      if (has_failed && status.reason.empty()) {
        status.reason = fmt::format("a model cannot be loaded: {}", here.status.reason);
      }
    }
    if (slot.first_ready_at) status.ready_seconds = seconds(clock_.now() - *slot.first_ready_at);
    for (const auto& sent : slot.in_flight) {
      if (!sent.batch) continue;
      status.in_flight_texts += sent.batch->work.items.size();
      status.in_flight_tokens += sent.token_count;
    }
    status.token_budget = slot.budget.now();
    if (status.engine_seconds > 0) {
      status.tokens_per_second = static_cast<double>(status.token_count) / status.engine_seconds;
    }
  }
  return all;
}

}  // namespace muster
