// Runs around every driver call, so it does little: the page gets two words, and counts are
// bumped under a lock that is nearly always free. Names are compared by their pointers, as
// functions are named by literals. The lock is needed only because another thread sums the
// counts up.

#include "telemetry/call_costs.h"

#include <algorithm>

namespace muster {

void CallCosts::enter(const char* function, TimePoint at) {
  const auto found = std::ranges::find(counts_, function, &Count::function);
  current_ = static_cast<std::size_t>(found - counts_.begin());
  if (found == counts_.end()) {
    const MutexLock lock(mutex_);
    counts_.push_back({function, page_.add_function(function), 0, {}});
  }
  page_.enter(slot_, counts_[current_].number, at);
}

void CallCosts::leave(const char* /*function*/, std::int32_t code, Duration took) {
  page_.leave(slot_);
  const MutexLock lock(mutex_);
  auto& count = counts_[current_];
  ++count.calls;
  count.took += took;
  if (code == 0) return;
  const auto found = std::ranges::find_if(errors_, [&](const Errors& errors) {
    return errors.count == current_ && errors.code == code;
  });
  if (found == errors_.end()) {
    errors_.push_back({current_, code, 1});
  } else {
    ++found->times;
  }
}

void CallCosts::add_to(std::map<std::string, CallCost>& costs) const {
  const MutexLock lock(mutex_);
  for (const auto& count : counts_) {
    auto& cost = costs[count.function];
    cost.function = count.function;
    cost.calls += count.calls;
    cost.seconds += seconds(count.took);
  }
  for (const auto& errors : errors_) {
    costs[counts_[errors.count].function].errors[errors.code] += errors.times;
  }
}

}  // namespace muster
