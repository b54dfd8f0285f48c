#include "telemetry/call_costs.h"

#include <algorithm>

namespace muster {

void CallCosts::leave(const char* function, std::int32_t code, Duration took) {
  page_.leave(slot_);
  const MutexLock lock(mutex_);
  auto found = std::ranges::find(counts_, function, &Count::function);
  if (found == counts_.end()) {
    counts_.push_back({function, 0, {}, {}});
    found = std::prev(counts_.end());
  }
  ++found->calls;
  found->took += took;
  if (code != 0) ++found->errors[code];
}

void CallCosts::add_to(std::map<std::string, CallCost>& costs) const {
  const MutexLock lock(mutex_);
  for (const auto& count : counts_) {
    auto& cost = costs[count.function];
    cost.function = count.function;
    cost.calls += count.calls;
    cost.seconds += seconds(count.took);
    for (const auto& [code, times] : count.errors) cost.errors[code] += times;
  }
}

}  // namespace muster
