#include <array>
#include <cmath>
#include <cstdlib>

#include "scheduler/placement_expression.h"

// Any text is an expression or an Error; what an expression gives is finite or nothing.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto expression = muster::PlacementExpression::parse(text);
  if (!expression) return 0;
  std::array<std::optional<double>, muster::kPlacementNameCount> values;
  for (std::size_t i = 0; i < values.size(); i += 2) values[i] = static_cast<double>(i) - 3;
  const auto value = (*expression)->evaluate(values);
  if (value && !std::isfinite(*value)) std::abort();
  return 0;
}
