#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cache/vector_cache.h"
#include "scheduler/batch_queue.h"
#include "spec/serving.h"

namespace muster {

/// The number of a call to the service; never given twice.
using CallId = std::uint64_t;

/// Who waits for a text: a call, and which of its texts it is.
struct FlightWaiter {
  CallId call = 0;
  std::uint32_t position = 0;
};

/// A text on its way through the fleet, and everybody who waits for it.
struct Flight {
  ItemKey item = 0;
  ModelId model = 0;
  std::optional<CacheKey> key;  // nullopt: its result is nobody else's (a pair)
  std::uint32_t token_count = 0;
  bool is_truncated = false;
  std::vector<FlightWaiter> waiters;
};

/// The texts in flight: equal ones of one model are computed once ("single flight"). Two models of
/// the same files do not share: they may be on other devices, and one may leave.
///
/// Pure. Threads: owned by one loop.
class FlightTable {
 public:
  /// The flight of an equal text; nullptr when there is none. Valid until the next call.
  Flight* find(ModelId model, const CacheKey& key);

  /// The flight of an item; nullptr when there is none.
  const Flight* find(ItemKey item) const;

  /// A new flight; its item number is higher than all before.
  Flight& add(ModelId model, const std::optional<CacheKey>& key);

  /// Takes the flight out: it has landed. nullopt when its last waiter has left before.
  std::optional<Flight> take(ItemKey item);

  /// The call waits for this item no more; true when nobody does now and the flight is gone.
  bool leave(ItemKey item, CallId call);

  std::size_t count() const { return by_item_.size(); }

 private:
  struct TextKey {
    ModelId model = 0;
    CacheKey key{};
    bool operator==(const TextKey&) const = default;
  };
  struct TextKeyHash {
    std::size_t operator()(const TextKey& key) const;
  };

  std::unordered_map<ItemKey, Flight> by_item_;
  std::unordered_map<TextKey, ItemKey, TextKeyHash> by_key_;
  ItemKey next_item_ = 1;
};

}  // namespace muster
