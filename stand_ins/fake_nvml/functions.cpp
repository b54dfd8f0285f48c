#include "fake_nvml/functions.h"

#include <algorithm>

namespace muster::fake_nvml {

std::optional<Function> find_function(std::string_view name) {
  const auto found = std::find(kFunctionNames.begin(), kFunctionNames.end(), name);
  if (found == kFunctionNames.end()) return std::nullopt;
  return static_cast<Function>(found - kFunctionNames.begin());
}

}  // namespace muster::fake_nvml
