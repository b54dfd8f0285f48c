// The bookkeeping of one visit: which calls were made, what failed, whether the device is gone. An
// absent reading is not a failure, and only the first answer decides on absence: a device that has
// answered once and then says "not supported" is in a passing state. Once a GPU is lost nothing
// more is asked of it in that visit.

#include "hw/nvml/nvml_visit.h"

#include <algorithm>
#include <utility>

namespace muster {

NvmlOffer offer_after(NvmlOffer before, NvmlCode code, bool is_one_of_many) {
  if (code == kNvmlSuccess) return NvmlOffer::Offered;
  if (before != NvmlOffer::Unknown) return before;
  const bool is_absent = code == kNvmlNotSupported || code == kNvmlFunctionNotFound ||
                         (is_one_of_many && code == kNvmlInvalidArgument);
  return is_absent ? NvmlOffer::Absent : NvmlOffer::Unknown;
}

NvmlVisit::~NvmlVisit() {
  sample_.call_count += call_.call_count();
  sample_.call_seconds += seconds(call_.took());
}

void NvmlVisit::set_percent(Reading reading, double percent) {
  // Counters of activity and of time are read one after the other: a trifle above 100 is full.
  constexpr double kRounding = 1.0;
  if (percent >= 0 && percent <= 100 + kRounding) {
    set(reading, std::min(percent, 100.0) / 100);
  } else {
    accept(kNvmlUnknown, {reading});
  }
}

bool NvmlVisit::accept(NvmlCode code, std::initializer_list<Reading> readings) {
  if (code == kNvmlSuccess) return true;
  if (code == kNvmlGpuIsLost) {
    lose(code);
  } else if (code != kNvmlNotSupported && code != kNvmlFunctionNotFound) {
    for (const auto reading : readings) sample_.errors.push_back({reading, code});
  }
  return false;
}

void NvmlVisit::lose(NvmlCode code) { lose(library_.explain(code)); }

void NvmlVisit::lose(std::string reason) {
  if (!is_lost()) sample_.lost_reason = std::move(reason);
}

}  // namespace muster
