// Calls by id, and their deadlines in order. The two stay in step because only `take` removes
// either: a call that has been answered, has failed or was given up on can no longer expire.
// Several calls may share a deadline, so the entry is found among equals by the id. Ids are given
// out upwards, so sorted ids are in the order of arrival.

#include "serving/call_table.h"

#include <algorithm>
#include <utility>

namespace muster {

std::unique_ptr<Call> CallTable::make() {
  auto call = std::make_unique<Call>();
  call->id = next_id_++;
  return call;
}

Call& CallTable::add(std::unique_ptr<Call> call) {
  const auto id = call->id;
  return *calls_.emplace(id, std::move(call)).first->second;
}

Call* CallTable::find(CallId id) const {
  const auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second.get();
}

void CallTable::set_deadline(Call& call, TimePoint deadline) {
  call.deadline = deadline;
  deadlines_.emplace(deadline, call.id);
}

std::unique_ptr<Call> CallTable::take(CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return nullptr;
  auto call = std::move(found->second);
  calls_.erase(found);
  const auto [begin, end] = deadlines_.equal_range(call->deadline);
  const auto entry = std::find_if(begin, end, [id](const auto& item) { return item.second == id; });
  if (entry != end) deadlines_.erase(entry);
  return call;
}

std::optional<TimePoint> CallTable::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

// One at a time, because ending a call may end others.
std::optional<CallId> CallTable::find_expired(TimePoint now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return std::nullopt;
  return deadlines_.begin()->second;
}

std::size_t CallTable::count_of(ModelId model) const {
  return static_cast<std::size_t>(
      std::count_if(calls_.begin(), calls_.end(),
                    [model](const auto& entry) { return entry.second->model == model; }));
}

std::vector<CallId> CallTable::ids() const {
  std::vector<CallId> all;
  all.reserve(calls_.size());
  for (const auto& [id, call] : calls_) all.push_back(id);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace muster
