// Kernels of torch compute attention on a GPU: they know neither caps nor experts.

#include "spec/gpu_decoder_limits.h"

#include <fmt/format.h>

namespace muster {

std::optional<std::string> not_computed_on_gpu(const DecoderSpec& spec) {
  const auto family = decoder_family_name(spec.family);
  if (spec.attention_cap != 0 || spec.logit_cap != 0) {
    return fmt::format("the capped attention of {} is computed on CPUs only", family);
  }
  if (spec.expert_count > 0) {
    return fmt::format("the experts of {} are computed on CPUs only", family);
  }
  return std::nullopt;
}

}  // namespace muster
