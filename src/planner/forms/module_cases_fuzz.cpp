// A hostile list of module trees ends in an Error, or in answers that are the same when asked
// again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "planner/forms/module_cases.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool is_accelerate : {true, false}) {
    const auto answer = muster::answer_module_cases(text, is_accelerate);
    if (!answer) continue;
    const auto again = muster::answer_module_cases(text, is_accelerate);
    MUSTER_CHECK(again.has_value() && *again == *answer);
  }
  return 0;
}
