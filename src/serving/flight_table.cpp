// One computation for equal texts that are under way at the same time. A flight is found by its
// text, to join it, and by its item, to answer it; both indexes are changed together. A text
// without a key is never shared. When the last caller leaves, the flight goes too, and the answer
// that may still come finds nothing.

#include "serving/flight_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster {

std::size_t FlightTable::TextKeyHash::operator()(const TextKey& key) const {
  std::size_t hash = 0;  // any part of a SHA-256 is as good as the whole
  std::memcpy(&hash, key.key.data(), sizeof hash);
  return hash + key.model;
}

Flight* FlightTable::find(ModelId model, const CacheKey& key) {
  const auto found = by_key_.find({model, key});
  return found == by_key_.end() ? nullptr : &by_item_.at(found->second);
}

const Flight* FlightTable::find(ItemKey item) const {
  const auto found = by_item_.find(item);
  return found == by_item_.end() ? nullptr : &found->second;
}

Flight& FlightTable::add(ModelId model, const std::optional<CacheKey>& key) {
  const auto item = next_item_++;
  if (key) by_key_.emplace(TextKey{model, *key}, item);
  auto& flight = by_item_[item];
  flight.item = item;
  flight.model = model;
  flight.key = key;
  return flight;
}

std::optional<Flight> FlightTable::take(ItemKey item) {
  const auto found = by_item_.find(item);
  if (found == by_item_.end()) return std::nullopt;
  auto flight = std::move(found->second);
  by_item_.erase(found);
  if (flight.key) by_key_.erase({flight.model, *flight.key});
  return flight;
}

// True: nobody waits any more, and the caller of this may take the text back from the fleet.
bool FlightTable::leave(ItemKey item, CallId call) {
  const auto found = by_item_.find(item);
  if (found == by_item_.end()) return false;
  auto& waiters = found->second.waiters;
  std::erase_if(waiters, [call](const FlightWaiter& waiter) { return waiter.call == call; });
  if (!waiters.empty()) return false;
  (void)take(item);
  return true;
}

}  // namespace muster
