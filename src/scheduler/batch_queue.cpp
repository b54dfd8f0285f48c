#include "scheduler/batch_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

// Below this a batch costs more in frames and kernel starts than in products (measured on small
// encoders: a 64-token batch still reaches 90 % of the product's speed).
constexpr std::uint64_t kTokensMin = 64;

// Deaths that a text may cause: one may be chance, two, the second of them alone, are not.
constexpr std::uint32_t kStrikesMax = 2;

}  // namespace

void BatchQueue::add(const WorkItem& item) {
  auto& keys = by_length_[item.token_count];
  if (keys.empty() || item.key < *keys.begin()) {
    if (!keys.empty()) oldest_.erase({*keys.begin(), item.token_count});
    oldest_.insert({item.key, item.token_count});
  }
  keys.insert(item.key);
  ++item_count_;
  token_count_ += item.token_count;
}

std::optional<WorkBatch> BatchQueue::cut(std::size_t device, const CutLimits& limits) {
  if (const auto suspect = find_suspect(device, limits); suspect != suspects_.end()) {
    WorkBatch batch = *suspect;
    suspects_.erase(suspect);
    item_count_ -= batch.items.size();
    token_count_ -= batch.token_count;
    batch.id = next_batch_id_++;
    return batch;
  }
  if (by_length_.empty()) return std::nullopt;

  const auto slots = std::max<std::uint64_t>(1, limits.slot_count);
  const auto share =
      std::max({kTokensMin, (token_count_ + slots - 1) / slots, limits.worthwhile_tokens});
  const auto budget = std::min(limits.token_budget, share);

  WorkBatch batch;
  batch.id = next_batch_id_++;
  const auto start = length_of_oldest();
  take_of_length(start, std::max<std::uint64_t>(budget, start), batch);
  // Fill up with the neighbours in length, nearest first.
  while (!by_length_.empty()) {
    const auto above = by_length_.lower_bound(start);
    auto nearest = above;
    if (above == by_length_.end()) {
      nearest = std::prev(above);
    } else if (above != by_length_.begin()) {
      const auto below = std::prev(above);
      if (start - below->first < above->first - start) nearest = below;
    }
    const auto length = nearest->first;
    if (batch.token_count + length > budget) break;
    take_of_length(length, budget, batch);
  }
  return batch;
}

std::optional<ItemKey> BatchQueue::oldest(std::size_t device, const CutLimits& limits) const {
  const auto suspect = find_suspect(device, limits);
  if (suspect != suspects_.end()) return suspect->items.front().key;
  if (by_length_.empty()) return std::nullopt;
  return oldest_.begin()->first;
}

bool BatchQueue::remove(const WorkItem& item) {
  const auto found = by_length_.find(item.token_count);
  if (found != by_length_.end() && found->second.contains(item.key)) {
    auto& keys = found->second;
    oldest_.erase({*keys.begin(), item.token_count});
    keys.erase(item.key);
    if (keys.empty()) {
      by_length_.erase(found);
    } else {
      oldest_.insert({*keys.begin(), item.token_count});
    }
  } else {
    const auto suspect =
        std::find_if(suspects_.begin(), suspects_.end(),
                     [&](const WorkBatch& batch) { return batch.items.front().key == item.key; });
    if (suspect == suspects_.end()) return false;
    suspects_.erase(suspect);
  }
  --item_count_;
  token_count_ -= item.token_count;
  return true;
}

std::vector<WorkItem> BatchQueue::take_all() {
  std::vector<WorkItem> all;
  for (const auto& [length, keys] : by_length_) {
    for (const auto key : keys) all.push_back({key, length});
    token_count_ -= length * keys.size();
  }
  item_count_ -= all.size();
  by_length_.clear();
  oldest_.clear();
  std::sort(all.begin(), all.end(),
            [](const WorkItem& left, const WorkItem& right) { return left.key < right.key; });
  return all;
}

void BatchQueue::give_back(WorkBatch batch) {
  if (batch.strike_count == 0) {
    for (const auto& item : batch.items) add(item);
    return;
  }
  item_count_ += batch.items.size();
  token_count_ += batch.token_count;
  suspects_.push_front(std::move(batch));
}

std::optional<ItemKey> BatchQueue::strike(WorkBatch batch, std::size_t device) {
  MUSTER_CHECK(!batch.items.empty());
  const auto strikes = batch.strike_count + 1;
  if (strikes >= kStrikesMax) {
    MUSTER_CHECK(batch.items.size() == 1);  // the first strike took the batch apart
    return batch.items.front().key;
  }
  for (const auto& item : batch.items) {
    suspects_.push_back({.items = {item},
                         .token_count = item.token_count,
                         .strike_count = strikes,
                         .struck_device = device});
    ++item_count_;
    token_count_ += item.token_count;
  }
  return std::nullopt;
}

BatchQueue::Suspects::const_iterator BatchQueue::find_suspect(std::size_t device,
                                                              const CutLimits& limits) const {
  if (!limits.may_take_suspects) return suspects_.end();
  return std::find_if(suspects_.begin(), suspects_.end(), [&](const WorkBatch& suspect) {
    return limits.is_only_device || suspect.struck_device != device;
  });
}

void BatchQueue::take_of_length(std::uint32_t length, std::uint64_t budget, WorkBatch& batch) {
  const auto found = by_length_.find(length);
  auto& keys = found->second;
  oldest_.erase({*keys.begin(), length});
  while (!keys.empty() && batch.token_count + length <= budget) {
    batch.items.push_back({*keys.begin(), length});
    batch.token_count += length;
    keys.erase(keys.begin());
    --item_count_;
    token_count_ -= length;
  }
  if (keys.empty()) {
    by_length_.erase(found);
  } else {
    oldest_.insert({*keys.begin(), length});
  }
}

}  // namespace muster
