// The part of the fleet that finds out whose fault a failed batch is; the rule is that of
// device_blame.h.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/worker_fleet.h"

namespace muster {
namespace {

/// What is wrong with the texts themselves, whoever computes them.
bool is_about_texts(ErrorKind kind) {
  return kind == ErrorKind::InvalidArgument || kind == ErrorKind::Unsupported ||
         kind == ErrorKind::NotFound;
}

Error not_finite_error() {
  return {ErrorKind::Unsupported, "the vector of this text is not finite (NaN or infinity)"};
}

}  // namespace

void WorkerFleet::on_batch_failed(WorkerSlot& slot, DispatchBatch batch, const Error& error) {
  if (error.kind == ErrorKind::ResourceExhausted && batch.work.items.size() > 1) {
    slot.budget.on_out_of_memory(batch.work.token_count);
    notice(slot, fmt::format("out of memory with {} tokens; its batches are now at most {}",
                             batch.work.token_count, slot.budget.now()));
    give_back(slot, std::move(batch));
    sync(slot);
  } else if (is_about_texts(error.kind)) {
    strike(slot, std::move(batch), error);
  } else {
    accuse(slot, std::move(batch), error);
  }
}

// The texts of a batch whose rows are not finite, once the others are taken out. Whose row was not
// twice has its error; the rest is tried once more.
void WorkerFleet::on_not_finite(WorkerSlot& slot, DispatchBatch batch) {
  const auto device = index_of(slot);
  std::vector<ItemKey> bad;
  std::erase_if(batch.work.items, [&](const WorkItem& item) {
    auto& seen_on = texts_.at(item.key).not_finite_on;
    const bool is_second = seen_on.has_value();
    seen_on = device;
    if (is_second) bad.push_back(item.key);
    return is_second;
  });
  if (batch.work.items.empty()) {
    dispatcher_.give_back(device, std::move(batch), clock_.now());  // only takes it off the books
  } else {
    accuse(slot, std::move(batch), not_finite_error());
  }
  for (const auto key : bad) fail_item(key, not_finite_error());
}

void WorkerFleet::accuse(WorkerSlot& slot, DispatchBatch batch, const Error& error) {
  for (const auto& item : batch.work.items) {
    const auto text = texts_.find(item.key);
    if (text == texts_.end()) continue;
    const std::pair worker{index_of(slot), slot.serial};
    if (std::exchange(text->second.failed_in, worker) != worker) ++text->second.fault_count;
  }
  // What else it had when it failed waits for the same verdict.
  if (slot.accusation) return return_failed(slot, std::move(batch), error);
  const auto model = batch.model;
  slot.accusation = Accusation{std::move(batch), error};
  if (!slot.is_alive() || !has_canary(model)) return acquit(slot);
  notice(slot, fmt::format("a batch failed: {}; its canary is asked", error.message));
  sync(slot);
  send_canary(slot, model);
}

void WorkerFleet::acquit(WorkerSlot& slot) {
  auto accused = *std::exchange(slot.accusation, std::nullopt);
  const bool is_at_fault = slot.is_alive() && slot.blame.on_failed();
  if (is_at_fault) {
    const auto reason =
        fmt::format("it fails at batch after batch, the last one with: {}", accused.error.message);
    return_failed(slot, std::move(accused.batch), accused.error);
    return convict(slot, reason);
  }
  try_elsewhere(slot, std::move(accused.batch), accused.error);
  sync(slot);
}

void WorkerFleet::try_elsewhere(WorkerSlot& slot, DispatchBatch batch, const Error& error) {
  const bool is_struck_here = batch.work.struck_device == index_of(slot);
  if (batch.work.strike_count > 0) {
    const bool is_alone = batch.work.items.size() == 1;
    if (is_alone && !slot.blame.may_blame_text(is_struck_here)) {
      return give_back(slot, std::move(batch));
    }
    return strike(slot, std::move(batch), error);
  }
  const auto items = batch.work.items;
  const auto model = batch.model;
  dispatcher_.retry(index_of(slot), std::move(batch));
  after_return(items, model);
}

// The device is at fault, or is about to be judged: no strike, unless these texts fail everywhere.
void WorkerFleet::return_failed(WorkerSlot& slot, DispatchBatch batch, const Error& error) {
  bool is_suspected = false;
  for (const auto& item : batch.work.items) {
    const auto text = texts_.find(item.key);
    if (text == texts_.end()) continue;
    text->second.not_finite_on.reset();
    is_suspected |= text->second.fault_count >= DeviceBlame::kTextFaultsMost;
  }
  if (is_suspected) return strike(slot, std::move(batch), error);
  give_back(slot, std::move(batch));
}

void WorkerFleet::convict(WorkerSlot& slot, const std::string& reason) {
  slot.is_at_fault = true;
  quarantine(slot, reason);
  end_worker(slot, EndReason::Health, reason, WorkerEnd::Innocent);
}

// A batch that another device failed at was served as it was.
void WorkerFleet::blame_outdone(const WorkerSlot& slot, const DispatchBatch& batch) {
  const auto& work = batch.work;
  if (!work.is_retry || !work.struck_device || *work.struck_device == index_of(slot)) return;
  auto& outdone = slots_[*work.struck_device];
  const auto text = texts_.find(work.items.front().key);
  const std::pair worker{*work.struck_device, outdone.serial};
  if (text == texts_.end() || text->second.failed_in != worker) return;
  const bool was_not_finite = text->second.not_finite_on.has_value();
  if (!outdone.is_alive() || !outdone.blame.on_outdone(was_not_finite)) return;
  convict(outdone, fmt::format("{} that {} can",
                               was_not_finite ? "it gives no finite vector for texts"
                                              : "it fails at batches",
                               slot.total.name));
}

}  // namespace muster
