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

// Deaths that a group may cause before it is suspected: one may be chance, two on two devices are
// not.
constexpr std::uint32_t kStrikesMax = 2;

std::uint64_t sum_tokens(const std::vector<WorkItem>& items) {
  std::uint64_t sum = 0;
  for (const auto& item : items) sum += item.token_count;
  return sum;
}

}  // namespace

void BatchQueue::add(const WorkItem& item) {
  by_length_[item.token_count].push_back(item);
  ++item_count_;
  token_count_ += item.token_count;
}

std::optional<WorkBatch> BatchQueue::cut(std::size_t device, const CutLimits& limits) {
  if (auto suspects = take_suspects(device, limits.is_only_device)) {
    suspects->id = next_batch_id_++;
    return suspects;
  }
  if (by_length_.empty()) return std::nullopt;

  const auto slots = std::max<std::uint64_t>(1, limits.free_slot_count);
  const auto share = std::max(kTokensMin, (token_count_ + slots - 1) / slots);
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

void BatchQueue::give_back(WorkBatch batch) {
  if (batch.strike_count > 0) {
    count(batch);
    suspects_.push_front(std::move(batch));
    return;
  }
  for (const auto& item : batch.items) {
    auto& queue = by_length_[item.token_count];
    const auto place = std::lower_bound(
        queue.begin(), queue.end(), item,
        [](const WorkItem& left, const WorkItem& right) { return left.key < right.key; });
    queue.insert(place, item);
  }
  count(batch);
}

std::optional<ItemKey> BatchQueue::strike(WorkBatch batch, std::size_t device) {
  MUSTER_CHECK(!batch.items.empty());
  ++batch.strike_count;
  batch.struck_device = device;
  if (batch.strike_count < kStrikesMax) {
    count(batch);
    suspects_.push_back(std::move(batch));
    return std::nullopt;
  }
  if (batch.items.size() == 1) {
    return batch.items.front().key;
  }
  const auto half = static_cast<std::ptrdiff_t>(batch.items.size() / 2);
  WorkBatch second;
  second.items.assign(batch.items.begin() + half, batch.items.end());
  batch.items.resize(static_cast<std::size_t>(half));
  for (auto* part : {&batch, &second}) {
    part->token_count = sum_tokens(part->items);
    part->strike_count = kStrikesMax - 1;  // one more death halves it again
    part->struck_device = device;
    count(*part);
    suspects_.push_back(std::move(*part));
  }
  return std::nullopt;
}

std::optional<WorkBatch> BatchQueue::take_suspects(std::size_t device, bool is_only_device) {
  const auto found = std::find_if(suspects_.begin(), suspects_.end(), [&](const WorkBatch& group) {
    return is_only_device || group.struck_device != device;
  });
  if (found == suspects_.end()) return std::nullopt;
  WorkBatch group = std::move(*found);
  suspects_.erase(found);
  item_count_ -= group.items.size();
  token_count_ -= group.token_count;
  return group;
}

void BatchQueue::take_of_length(std::uint32_t length, std::uint64_t budget, WorkBatch& batch) {
  const auto found = by_length_.find(length);
  auto& queue = found->second;
  while (!queue.empty() && batch.token_count + length <= budget) {
    batch.items.push_back(queue.front());
    batch.token_count += length;
    queue.pop_front();
    --item_count_;
    token_count_ -= length;
  }
  if (queue.empty()) by_length_.erase(found);
}

std::uint32_t BatchQueue::length_of_oldest() const {
  const auto oldest = std::min_element(by_length_.begin(), by_length_.end(),
                                       [](const auto& left, const auto& right) {
                                         return left.second.front().key < right.second.front().key;
                                       });
  return oldest->first;
}

void BatchQueue::count(const WorkBatch& batch) {
  item_count_ += batch.items.size();
  token_count_ += batch.token_count;
}

}  // namespace muster
