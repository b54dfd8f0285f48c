#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::engine {

/// How likely tokens are, against the likeliest: e^((logit - largest) / temperature), as
/// `DecoderKernels::weigh` gives it; from e^-87 down 0.
///
/// Weights are float32. They are summed in float32 in chunks of 1,024, and those sums in float64:
/// the many small ones of a large vocabulary would be lost in one float32.
///
/// Threads: immutable.
class TokenWeights {
 public:
  /// Writes the weights over the logits, whose memory it goes on using. largest: of the logits.
  TokenWeights(std::span<float> logits, float largest, double temperature);

  std::span<const float> all() const { return weights_; }
  double total() const { return total_; }

  /// The first token at which the sum of the weights up to it is above `sum`, of [0, total());
  /// where rounding leaves none, the last that has a weight.
  std::uint32_t token_at(double sum) const;

 private:
  std::span<float> weights_;
  std::vector<double> chunk_sums_;
  double total_ = 0;
};

/// The sum of e^(logit - largest), of logits that stay.
double sum_of_weights(std::span<const float> logits, float largest);

}  // namespace muster::engine
