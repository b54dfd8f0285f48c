#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/prefetch.h"
#include "scheduler/batch_queue.h"

namespace muster {

/// Values by the keys of texts, for tables that every text goes through several times: a look-up
/// touches a place in one array and the value, and a text that comes after another one has gone
/// takes no memory.
///
/// Open addressing with linear probing, at most half full. Keys come in rows: four of a row lie
/// beside each other, most of them in one line of a cache, and multiplication spreads the fours
/// evenly. The keys behind one that is erased move up, so that nothing marks its place. Memory
/// grows with the most values at a time, and is given back when the last one goes.
/// Source: Knuth, "The Art of Computer Programming", volume 3, section 6.4: multiplicative hashing
/// by the golden ratio, and algorithm R.
///
/// Threads: not thread-safe; owned by one loop.
template <typename Value>
class KeyTable {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool contains(ItemKey key) const { return slot_of(key) != kNowhere; }

  /// nullptr: the key is not here. A value stays where it is until it is erased.
  const Value* find(ItemKey key) const {
    const auto slot = slot_of(key);
    return slot == kNowhere ? nullptr : &value(slots_[slot].place);
  }
  Value* find(ItemKey key) {
    const auto slot = slot_of(key);
    return slot == kNowhere ? nullptr : &value(slots_[slot].place);
  }

  /// Has the value, where there is one, fetched to be changed while the caller goes on.
  [[gnu::always_inline]] void prefetch(ItemKey key) const {
    const auto slot = slot_of(key);
    if (slot != kNowhere) {
      prefetch_to_write(std::as_bytes(std::span(&value(slots_[slot].place), 1)));
    }
  }

  /// The value of a key that is here.
  Value& at(ItemKey key) {
    auto* value = find(key);
    MUSTER_CHECK(value != nullptr);
    return *value;
  }

  /// key: one that is not here.
  Value& add(ItemKey key, Value value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    auto slot = home_of(key);
    for (; slots_[slot].place != kFree; slot = after(slot)) MUSTER_CHECK(slots_[slot].key != key);
    const auto place = take_place();
    slots_[slot] = {key, place};
    ++size_;
    return this->value(place) = std::move(value);
  }

  /// False: the key is not here.
  bool erase(ItemKey key) {
    const auto slot = slot_of(key);
    if (slot == kNowhere) return false;
    const auto place = slots_[slot].place;
    if constexpr (!std::is_trivially_destructible_v<Value>) {
      value(place) = Value{};  // gives back what it holds
    }
    free_places_.push_back(place);
    close_gap(slot);
    if (--size_ == 0 && place_count_ > kValuesKept) *this = KeyTable();
    return true;
  }

  /// Calls `visitor(key, value)` for each, in no order. It must not change the table.
  template <typename Visitor>
  void visit(const Visitor& visitor) const {
    for (const auto& slot : slots_) {
      if (slot.place != kFree) visitor(slot.key, value(slot.place));
    }
  }

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;
  static constexpr std::size_t kNowhere = SIZE_MAX;
  static constexpr std::size_t kSlotsFirst = 64;
  static constexpr std::size_t kValuesKept = 4096;  // of a table that is empty
  static constexpr std::size_t kBlock = 256;        // values that are allocated together
  static constexpr int kLineBits = 2;
  static constexpr std::size_t kLine = std::size_t{1} << kLineBits;  // slots, of 16 bytes each
  static constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // times 2^64, odd

  struct Slot {
    ItemKey key = 0;
    std::uint32_t place = kFree;  // of its value
  };

  std::size_t home_of(ItemKey key) const {
    const auto line = ((key / kLine) * kGoldenRatio) >> (shift_ + kLineBits);
    return line * kLine + key % kLine;
  }
  std::size_t after(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  /// How many steps it is from one slot to another.
  std::size_t steps(std::size_t from, std::size_t to) const {
    return (to - from) & (slots_.size() - 1);
  }

  std::size_t slot_of(ItemKey key) const {
    if (size_ == 0) return kNowhere;
    for (auto slot = home_of(key); slots_[slot].place != kFree; slot = after(slot)) {
      if (slots_[slot].key == key) return slot;
    }
    return kNowhere;
  }

  const Value& value(std::uint32_t place) const { return blocks_[place / kBlock][place % kBlock]; }
  Value& value(std::uint32_t place) { return blocks_[place / kBlock][place % kBlock]; }

  std::uint32_t take_place() {
    if (free_places_.empty()) {
      if (place_count_ % kBlock == 0) blocks_.push_back(std::make_unique<Value[]>(kBlock));
      return place_count_++;
    }
    const auto place = free_places_.back();
    free_places_.pop_back();
    return place;
  }

  // Whoever stands behind the gap and would be looked for from it, or from before it, moves in.
  void close_gap(std::size_t gap) {
    for (auto slot = after(gap); slots_[slot].place != kFree; slot = after(slot)) {
      const auto home = home_of(slots_[slot].key);
      if (steps(home, slot) < steps(gap, slot)) continue;
      slots_[gap] = slots_[slot];
      gap = slot;
    }
    slots_[gap] = Slot();
  }

  void grow() {
    std::vector<Slot> before(std::max(kSlotsFirst, 2 * slots_.size()));
    before.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const auto& moved : before) {
      if (moved.place == kFree) continue;
      auto slot = home_of(moved.key);
      while (slots_[slot].place != kFree) slot = after(slot);
      slots_[slot] = moved;
    }
  }

  std::vector<Slot> slots_;                       // a power of two
  int shift_ = 0;                                 // from 64 bits to a slot
  std::vector<std::unique_ptr<Value[]>> blocks_;  // of kBlock values, which stay where they are
  std::uint32_t place_count_ = 0;
  std::vector<std::uint32_t> free_places_;
  std::size_t size_ = 0;
};

}  // namespace muster
