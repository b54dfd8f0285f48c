// Weights chunk by chunk, whose sums lead to the token that is drawn.

#include "engine/sampling/token_weights.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/ops/decoder_kernels.h"

namespace muster::engine {
namespace {

constexpr std::size_t kChunk = 1024;  // 16 additions in each lane of AVX-512's four sums

/// The last one that is above 0; there is one.
std::size_t last_weight(std::span<const float> weights) {
  std::size_t last = weights.size() - 1;
  while (last > 0 && weights[last] == 0) --last;
  return last;
}

}  // namespace

TokenWeights::TokenWeights(std::span<float> logits, float largest, double temperature)
    : weights_(logits) {
  const auto weigh = best_decoder_kernels().weigh;
  // The largest's own difference is 0, which infinity would not leave 0.
  const auto scale =
      static_cast<float>(std::min<double>(1 / temperature, std::numeric_limits<float>::max()));
  for (std::size_t begin = 0; begin < logits.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, logits.size() - begin);
    chunk_sums_.push_back(weigh(count, largest, scale, logits.data() + begin));
    total_ += chunk_sums_.back();
  }
}

// A chunk's sum is one of float32 and may be above the sum in float64. Where the walk ended with
// what is left, that would be a last token with hardly a weight, drawn more often than it should.
std::uint32_t TokenWeights::token_at(double sum) const {
  for (std::size_t chunk = 0; chunk < chunk_sums_.size(); ++chunk) {
    const std::size_t begin = chunk * kChunk;
    const auto weights = all().subspan(begin, std::min(kChunk, weights_.size() - begin));
    if (sum >= chunk_sums_[chunk]) {
      sum -= chunk_sums_[chunk];
      continue;
    }
    const double exact = std::accumulate(weights.begin(), weights.end(), 0.0);
    sum *= exact / chunk_sums_[chunk];
    for (std::size_t i = 0; i < weights.size(); ++i) {
      sum -= weights[i];
      if (sum < 0) return static_cast<std::uint32_t>(begin + i);
    }
    return static_cast<std::uint32_t>(begin + last_weight(weights));
  }
  return static_cast<std::uint32_t>(last_weight(all()));
}

double sum_of_weights(std::span<const float> logits, float largest) {
  const auto weigh = best_decoder_kernels().weigh;
  double sum = 0;
  float room[kChunk];
  for (std::size_t begin = 0; begin < logits.size(); begin += kChunk) {
    const std::size_t count = std::min(kChunk, logits.size() - begin);
    std::copy_n(logits.begin() + static_cast<std::ptrdiff_t>(begin), count, room);
    sum += weigh(count, largest, 1, room);
  }
  return sum;
}

}  // namespace muster::engine
