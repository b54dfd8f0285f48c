// Texts wait in one order for each length, so a batch of like lengths is a walk outwards from
// the first text's length. `first_` holds the head of every order and must change whenever a head
// does; it makes the first text of all a look at one entry. A batch that ended a worker is taken
// apart and its texts run alone, on another device where there is one, until the guilty text is
// known.

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

bool contains(const WorkBatch& batch, ItemKey key) {
  return std::any_of(batch.items.begin(), batch.items.end(),
                     [key](const WorkItem& item) { return item.key == key; });
}

}  // namespace

void BatchQueue::add(const WorkItem& item) {
  const ItemTurn turn{item.rank, item.key};
  auto& turns = by_length_[item.token_count];
  if (turns.empty() || turn < turns.first()) {
    if (!turns.empty()) first_.erase({turns.first(), item.token_count});
    first_.insert({turn, item.token_count});
  }
  turns.add(turn);
  ++item_count_;
  token_count_ += item.token_count;
}

// Suspects go first where the limits allow them. Else the size is an even share of what waits for
// each slot, so that no device idles while another holds a full batch, but never below what pays
// for its overhead. The first text always fits, however long it is.
std::optional<WorkBatch> BatchQueue::cut(std::size_t device, const CutLimits& limits) {
  if (const auto suspect = find_suspect(device, limits); suspect != suspects_.end()) {
    WorkBatch batch = *suspect;
    suspects_.erase(suspect);
    item_count_ -= batch.items.size();
    token_count_ -= batch.token_count;
    return batch;
  }
  if (by_length_.empty()) return std::nullopt;

  const auto slots = std::max<std::uint64_t>(1, limits.slot_count);
  const auto share =
      std::max({kTokensMin, (token_count_ + slots - 1) / slots, limits.worthwhile_tokens});
  const auto budget = std::min(limits.token_budget, share);

  WorkBatch batch;
  const auto [turn, start] = *first_.begin();
  const auto rank_most =
      turn.rank > UINT64_MAX - limits.rank_window ? UINT64_MAX : turn.rank + limits.rank_window;
  take_of_length(start, std::max<std::uint64_t>(budget, start), rank_most, batch);
  // Fill up with the neighbours in length, nearest first.
  while (const auto length = nearest_length(start, rank_most)) {
    if (batch.token_count + *length > budget) break;
    take_of_length(*length, budget, rank_most, batch);
  }
  return batch;
}

// Of two that are equally near the longer one.
std::optional<std::uint32_t> BatchQueue::nearest_length(std::uint32_t start,
                                                        std::uint64_t rank_most) const {
  const auto may_go = [&](const auto& entry) { return entry.second.first().rank <= rank_most; };
  const auto middle = by_length_.lower_bound(start);
  const auto above = std::find_if(middle, by_length_.end(), may_go);
  const auto below = std::find_if(std::make_reverse_iterator(middle), by_length_.rend(), may_go);
  if (below == by_length_.rend()) {
    return above == by_length_.end() ? std::nullopt : std::optional(above->first);
  }
  if (above == by_length_.end() || start - below->first < above->first - start) return below->first;
  return above->first;
}

std::optional<ItemTurn> BatchQueue::first(std::size_t device, const CutLimits& limits) const {
  const auto suspect = find_suspect(device, limits);
  if (suspect != suspects_.end()) {
    const auto& item = suspect->items.front();
    return ItemTurn{item.rank, item.key};
  }
  if (by_length_.empty()) return std::nullopt;
  return first_.begin()->first;
}

bool BatchQueue::is_suspect(ItemKey key) const {
  return std::any_of(suspects_.begin(), suspects_.end(),
                     [key](const WorkBatch& suspect) { return contains(suspect, key); });
}

bool BatchQueue::remove_from_length(const WorkItem& item) {
  const auto found = by_length_.find(item.token_count);
  if (found == by_length_.end()) return false;
  auto& turns = found->second;
  const auto head = turns.first();
  if (!turns.remove({item.rank, item.key})) return false;
  first_.erase({head, item.token_count});
  if (turns.empty()) {
    by_length_.erase(found);
  } else {
    first_.insert({turns.first(), item.token_count});
  }
  return true;
}

bool BatchQueue::remove(const WorkItem& item) {
  if (!remove_from_length(item)) {
    const auto is_it = [&](const WorkItem& other) { return other.key == item.key; };
    const auto suspect =
        std::find_if(suspects_.begin(), suspects_.end(), [&](const WorkBatch& batch) {
          return std::any_of(batch.items.begin(), batch.items.end(), is_it);
        });
    if (suspect == suspects_.end()) return false;
    std::erase_if(suspect->items, is_it);
    suspect->token_count -= item.token_count;
    if (suspect->items.empty()) suspects_.erase(suspect);
  }
  --item_count_;
  token_count_ -= item.token_count;
  return true;
}

std::vector<WorkItem> BatchQueue::take_all() {
  std::vector<WorkItem> all;
  for (const auto& [length, turns] : by_length_) {
    const auto tokens = length;  // clang 14 captures no structured binding
    turns.visit([&](const ItemTurn& turn) { all.push_back({turn.key, tokens, turn.rank}); });
    token_count_ -= length * turns.size();
  }
  item_count_ -= all.size();
  by_length_.clear();
  first_.clear();
  std::sort(all.begin(), all.end(), [](const WorkItem& left, const WorkItem& right) {
    return ItemTurn{left.rank, left.key} < ItemTurn{right.rank, right.key};
  });
  return all;
}

// Without a strike the texts mix with the others again; a suspect batch keeps its shape and its
// place.
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
  // The first strike takes a batch apart; one that was tried as it is by two devices has it now.
  if (strikes >= kStrikesMax && batch.items.size() == 1) return batch.items.front().key;
  for (const auto& item : batch.items) {
    suspects_.push_back({.items = {item},
                         .token_count = item.token_count,
                         .strike_count = 1,
                         .struck_device = device});
    ++item_count_;
    token_count_ += item.token_count;
  }
  return std::nullopt;
}

void BatchQueue::retry(WorkBatch batch, std::size_t device) {
  item_count_ += batch.items.size();
  token_count_ += batch.token_count;
  batch.strike_count = 1;
  batch.struck_device = device;
  batch.is_retry = true;
  suspects_.push_back(std::move(batch));
}

BatchQueue::Suspects::const_iterator BatchQueue::find_suspect(std::size_t device,
                                                              const CutLimits& limits) const {
  if (!limits.may_take_suspects) return suspects_.end();
  return std::find_if(suspects_.begin(), suspects_.end(), [&](const WorkBatch& suspect) {
    return limits.is_only_device || suspect.struck_device != device;
  });
}

void BatchQueue::take_of_length(std::uint32_t length, std::uint64_t budget, std::uint64_t rank_most,
                                WorkBatch& batch) {
  const auto found = by_length_.find(length);
  auto& turns = found->second;
  first_.erase({turns.first(), length});
  while (!turns.empty() && turns.first().rank <= rank_most &&
         batch.token_count + length <= budget) {
    const auto& turn = turns.first();
    batch.items.push_back({turn.key, length, turn.rank});
    batch.token_count += length;
    turns.remove_first();
    --item_count_;
    token_count_ -= length;
  }
  if (turns.empty()) {
    by_length_.erase(found);
  } else {
    first_.insert({turns.first(), length});
  }
}

}  // namespace muster
