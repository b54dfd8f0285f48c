#include "engine/ops/relative_positions.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace muster::engine {

std::uint32_t relative_position_bucket(std::int64_t offset, std::uint32_t bucket_count) {
  constexpr double kDistanceMax = 128;  // Source: modeling_mpnet.py, `max_distance`
  const auto half = static_cast<std::int64_t>(bucket_count / 2);
  const std::int64_t side = offset > 0 ? half : 0;
  const std::int64_t distance = std::abs(offset);
  const std::int64_t exact = half / 2;
  if (distance < exact) return static_cast<std::uint32_t>(side + distance);
  const auto logarithm = std::log(static_cast<float>(distance) / static_cast<float>(exact));
  const auto span = static_cast<float>(std::log(kDistanceMax / static_cast<double>(exact)));
  const auto beyond =
      static_cast<std::int64_t>(logarithm / span * static_cast<float>(half - exact));
  return static_cast<std::uint32_t>(side + std::min(exact + beyond, half - 1));
}

std::vector<float> relative_bias_by_offset(std::span<const float> bias, std::uint32_t bucket_count,
                                           std::uint32_t head_count, std::uint32_t length_max) {
  const std::size_t stride = 2 * std::size_t{length_max} - 1;
  std::vector<float> by_offset(head_count * stride);
  for (std::size_t at = 0; at < stride; ++at) {
    const auto offset = static_cast<std::int64_t>(at) - (static_cast<std::int64_t>(length_max) - 1);
    const auto bucket = relative_position_bucket(offset, bucket_count);
    for (std::size_t head = 0; head < head_count; ++head) {
      by_offset[head * stride + at] = bias[bucket * head_count + head];
    }
  }
  return by_offset;
}

}  // namespace muster::engine
