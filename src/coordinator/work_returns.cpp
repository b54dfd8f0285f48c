// Texts and batches that come back without rows: from groups that were lost, from groups that live
// and failed, and because their model is gone. The rules are those of fleet_rules.h and
// device_blame.h. Only a batch that was running is suspected, and a group's canary is asked for
// before any text is.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/in_flight_work.h"

namespace muster {
namespace {

/// What is wrong with the texts themselves, whoever computes them.
bool is_about_texts(ErrorKind kind) {
  return kind == ErrorKind::InvalidArgument || kind == ErrorKind::Unsupported ||
         kind == ErrorKind::NotFound;
}

// As many as a larger budget takes (token_budget.cpp).
constexpr std::uint32_t kLoneBatches = 20;

// Half a minute of a canary that is asked again after a second, if it is that each time.
constexpr std::uint32_t kExcusesMost = 6;

Error not_finite_error() {
  return {ErrorKind::Unsupported, "the vector of this text is not finite (NaN or infinity)"};
}

}  // namespace

void InFlightWork::on_lost(std::size_t group, const GroupLoss& loss) {
  auto end = loss.end;
  // One that failed at a batch just before it ended was breaking: what else it ran is innocent.
  if (groups_[group].accusation) {
    end = WorkerEnd::Innocent;
    auto accused = *std::exchange(groups_[group].accusation, std::nullopt);
    return_failed(group, std::move(accused.batch), accused.error);
  }
  for (auto& [frame, batch] : std::exchange(groups_[group].batches, {})) {
    const bool was_running =
        std::find(loss.running.begin(), loss.running.end(), frame) != loss.running.end();
    const bool is_suspected = batch.work.strike_count > 0;
    const Error error{ErrorKind::Internal,
                      fmt::format("this text alone makes the worker fail: {}", loss.reason)};
    switch (fate_of_batch(end, was_running, is_suspected, has_peer(group, batch.model))) {
      case BatchFate::Again:
        give_back(group, std::move(batch));
        break;
      case BatchFate::Apart:
        strike(group, std::move(batch), error);
        break;
      case BatchFate::Elsewhere:
        try_elsewhere(group, std::move(batch), error);
        break;
    }
  }
}

bool InFlightWork::has_peer(std::size_t index, ModelId model) const {
  for (std::size_t peer = 0; peer < groups_.size(); ++peer) {
    const auto* there = parts_.models.find(peer, model);
    if (peer != index && there != nullptr && there->takes_work() && is_eligible(peer)) return true;
  }
  return false;
}

void InFlightWork::give_back(std::size_t index, DispatchBatch batch) {
  const auto items = batch.work.items;
  const auto model = batch.model;
  dispatcher_.give_back(index, std::move(batch), parts_.clock.now());
  after_return(items, model);
}

void InFlightWork::strike(std::size_t index, DispatchBatch batch, const Error& error) {
  const auto items = batch.work.items;
  const auto model = batch.model;
  const auto failed = dispatcher_.strike(index, std::move(batch), parts_.clock.now());
  after_return(items, model);
  if (!failed) return;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    parts_.groups.health(i).restarts.on_text_found();
  }
  fail_item(*failed, error);
}

// What nobody waits for any more does not wait either.
void InFlightWork::after_return(const std::vector<WorkItem>& items, ModelId model) {
  const bool is_served = parts_.models.is_served(model);
  for (const auto& item : items) {
    const bool is_wanted = texts_.contains(item.key);
    if (is_wanted && is_served) continue;
    dispatcher_.remove(item.key);
    if (is_wanted) fail_item(item.key, {ErrorKind::NotFound, "the model was unloaded"});
  }
}

void InFlightWork::on_failed(std::size_t group, std::uint64_t frame, const Error& error) {
  auto batch = take_batch(group, frame);
  if (!batch) return;
  if (error.kind == ErrorKind::ResourceExhausted) {
    on_full(group, *std::move(batch), error);
  } else if (is_about_texts(error.kind)) {
    strike(group, *std::move(batch), error);
  } else {
    accuse(group, *std::move(batch), error);
  }
}

// Less is asked of the group until it fits: smaller batches, then one text at a time. Where a text
// alone on the device finds no memory, its canary tells whether the text is too large for what
// there is, or everything is.
void InFlightWork::on_full(std::size_t index, DispatchBatch batch, const Error& error) {
  auto& group = groups_[index];
  const auto tokens = batch.work.token_count;
  const bool is_one_text = batch.work.items.size() == 1;
  if (is_one_text && parts_.groups.sent(index).empty()) {
    return accuse(index, std::move(batch), error);
  }
  if (!is_one_text) {
    group.budget.on_out_of_memory(tokens);
    parts_.on_notice(
        index, fmt::format("out of memory with {} tokens; its batches are now at most {}", tokens,
                           group.budget.now()));
  } else if (std::exchange(group.lone_count, kLoneBatches) == 0) {
    parts_.on_notice(index,
                     fmt::format("out of memory with one text of {} tokens beside others; its "
                                 "batches now come one at a time",
                                 tokens));
  }
  if (!is_one_text && batch.work.strike_count > 0) {
    strike(index, std::move(batch), error);  // it would come back as it is, and never fit
  } else {
    give_back(index, std::move(batch));
  }
  update_group(index);
}

// The texts of a batch whose rows are not finite, once the others are taken out. Whose row was not
// twice has its error; the rest is tried once more.
void InFlightWork::on_not_finite(std::size_t index, DispatchBatch batch) {
  std::vector<ItemKey> bad;
  std::erase_if(batch.work.items, [&](const WorkItem& item) {
    auto& seen_on = texts_.at(item.key).not_finite_on;
    const bool is_second = seen_on.has_value();
    seen_on = index;
    if (is_second) bad.push_back(item.key);
    return is_second;
  });
  if (batch.work.items.empty()) {
    // Only takes it off the records.
    dispatcher_.give_back(index, std::move(batch), parts_.clock.now());
  } else {
    accuse(index, std::move(batch), not_finite_error());
  }
  for (const auto key : bad) fail_item(key, not_finite_error());
}

void InFlightWork::accuse(std::size_t index, DispatchBatch batch, const Error& error) {
  auto& group = groups_[index];
  const auto& life = parts_.groups.life(index);
  const bool is_full = error.kind == ErrorKind::ResourceExhausted;  // says nothing of the worker
  for (const auto& item : batch.work.items) {
    auto* text = texts_.find(item.key);
    if (text == nullptr || is_full) continue;
    const std::pair worker{index, life.serial};
    if (std::exchange(text->failed_in, worker) != worker) ++text->fault_count;
  }
  // What else it had when it failed waits for the same verdict.
  if (group.accusation) return return_failed(index, std::move(batch), error);
  const auto model = batch.model;
  group.accusation = Accusation{std::move(batch), error};
  if (!life.is_alive() || !parts_.models.has_canary(model)) return acquit_of(index);
  parts_.on_notice(index, fmt::format("a batch failed: {}; its canary is asked", error.message));
  update_group(index);
  parts_.ask_canary(index, model);
}

bool InFlightWork::acquit(std::size_t group, ModelId model) {
  const auto& accusation = groups_[group].accusation;
  if (!accusation || accusation->batch.model != model) return false;
  acquit_of(group);
  return true;
}

void InFlightWork::excuse(std::size_t group, ModelId model) {
  auto& accusation = groups_[group].accusation;
  if (!accusation || accusation->batch.model != model) return;
  auto accused = *std::exchange(accusation, std::nullopt);
  // Memory that comes for the canary and goes for the text would have a job go on for ever.
  bool is_often = false;
  for (const auto& item : accused.batch.work.items) {
    auto* text = texts_.find(item.key);
    is_often |= text != nullptr && ++text->excuse_count > kExcusesMost;
  }
  if (is_often) return try_elsewhere(group, std::move(accused.batch), accused.error);
  give_back(group, std::move(accused.batch));
}

void InFlightWork::acquit_of(std::size_t index) {
  auto& group = groups_[index];
  auto accused = *std::exchange(group.accusation, std::nullopt);
  const bool is_full = accused.error.kind == ErrorKind::ResourceExhausted;
  const bool is_at_fault =
      !is_full && parts_.groups.life(index).is_alive() && group.blame.on_failed();
  if (is_at_fault) {
    const auto reason =
        fmt::format("it fails at batch after batch, the last one with: {}", accused.error.message);
    return_failed(index, std::move(accused.batch), accused.error);
    return parts_.groups.convict(index, reason);
  }
  try_elsewhere(index, std::move(accused.batch), accused.error);
  update_group(index);
}

void InFlightWork::try_elsewhere(std::size_t index, DispatchBatch batch, const Error& error) {
  if (batch.work.strike_count > 0) {
    const bool is_struck_here = batch.work.struck_device == index;
    const bool is_alone = batch.work.items.size() == 1;
    // Its canary had memory: the text is too large for what is left, and another one may fit.
    const bool is_full = error.kind == ErrorKind::ResourceExhausted;
    if (is_alone && !is_full && !groups_[index].blame.may_blame_text(is_struck_here)) {
      return give_back(index, std::move(batch));
    }
    return strike(index, std::move(batch), error);
  }
  const auto items = batch.work.items;
  const auto model = batch.model;
  dispatcher_.retry(index, std::move(batch));
  after_return(items, model);
}

// The group is at fault, or is about to be judged: no strike, unless these texts fail everywhere.
void InFlightWork::return_failed(std::size_t index, DispatchBatch batch, const Error& error) {
  bool is_suspected = false;
  for (const auto& item : batch.work.items) {
    auto* text = texts_.find(item.key);
    if (text == nullptr) continue;
    text->not_finite_on.reset();
    is_suspected |= text->fault_count >= DeviceBlame::kTextFaultsMost;
  }
  if (is_suspected) return strike(index, std::move(batch), error);
  give_back(index, std::move(batch));
}

// A batch that another group failed at was served as it was.
void InFlightWork::blame_outdone(std::size_t index, const DispatchBatch& batch) {
  const auto& work = batch.work;
  if (!work.is_retry || !work.struck_device || *work.struck_device == index) return;
  const auto outdone = *work.struck_device;
  const auto& life = parts_.groups.life(outdone);
  const auto* text = texts_.find(work.items.front().key);
  if (text == nullptr || text->failed_in != std::pair{outdone, life.serial}) return;
  const bool was_not_finite = text->not_finite_on.has_value();
  if (!life.is_alive() || !groups_[outdone].blame.on_outdone(was_not_finite)) return;
  parts_.groups.convict(outdone, fmt::format("{} that {} can",
                                             was_not_finite ? "it gives no finite vector for texts"
                                                            : "it fails at batches",
                                             parts_.groups.life(index).name));
}

void InFlightWork::deliver_refusals() {
  // One at a time: whoever hears of it may submit or cancel others.
  for (auto count = refused_.size(); count > 0 && !refused_.empty(); --count) {
    const auto [key, error] = std::move(refused_.front());
    refused_.erase(refused_.begin());
    parts_.events.on_item_failed(key, error);
  }
}

void InFlightWork::fail_item(ItemKey key, const Error& error) {
  if (texts_.erase(key)) parts_.events.on_item_failed(key, error);
}

void InFlightWork::fail_waiting(ModelId model, const Error& error) {
  std::vector<ItemKey> waiting;
  texts_.visit([&](ItemKey key, const Text& text) {
    if (text.item.item.model == model && dispatcher_.remove(key)) waiting.push_back(key);
  });
  std::sort(waiting.begin(), waiting.end());
  for (const auto key : waiting) fail_item(key, error);
}

void InFlightWork::on_unloaded(ModelId model) {
  // Nobody asks its canary any more: whose fault a batch of it was stays open.
  for (std::size_t i = 0; i < groups_.size(); ++i) acquit(i, model);
  fail_waiting(model, {ErrorKind::NotFound, "the model was unloaded"});
  dispatcher_.forget(model);
}

}  // namespace muster
