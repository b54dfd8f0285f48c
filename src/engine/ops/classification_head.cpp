// The head of a cross-encoder, in plain loops: it sees one row for each text, so its time is
// nothing beside the layers. The dense weight is transposed once, which makes the inner loop run
// along memory and over outputs, so that the compiler can use vectors without changing the order of
// any sum.

#include "engine/ops/classification_head.h"

#include <algorithm>
#include <cmath>

namespace muster::engine {
namespace {

template <typename Floats>
Floats copy_of(const at::Tensor& tensor) {
  const auto whole = tensor.contiguous();
  const auto* values = whole.const_data_ptr<float>();
  return Floats(values, values + whole.numel());
}

}  // namespace

ClassificationHead::ClassificationHead(const HeadWeights& weights)
    : is_relu_(weights.is_relu),
      dense_(copy_of<Floats>(weights.dense.weight.t())),
      dense_bias_(copy_of<Floats>(weights.dense.bias)),
      out_(copy_of<Floats>(weights.out.weight)),
      out_bias_(copy_of<Floats>(weights.out.bias)) {}

void ClassificationHead::score(std::span<const float> row, std::span<float> scores) const {
  const std::size_t size = dense_bias_.size();
  Floats inner = dense_bias_;
  for (std::size_t k = 0; k < row.size(); ++k) {
    const float* weights = dense_.data() + k * size;
    for (std::size_t c = 0; c < size; ++c) inner[c] += row[k] * weights[c];
  }
  for (auto& value : inner) value = is_relu_ ? std::max(value, 0.0F) : std::tanh(value);
  for (std::size_t label = 0; label < scores.size(); ++label) {
    const float* weights = out_.data() + label * size;
    float sum = out_bias_[label];
    for (std::size_t c = 0; c < size; ++c) sum += inner[c] * weights[c];
    scores[label] = sum;
  }
}

}  // namespace muster::engine
