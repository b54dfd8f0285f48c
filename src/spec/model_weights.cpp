#include "spec/model_weights.h"

namespace muster {

std::uint64_t ModelDescription::stored_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.bytes;
  return sum;
}

}  // namespace muster
