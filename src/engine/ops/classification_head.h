#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/memory_use.h"
#include "engine/models/encoder_weights.h"

namespace muster::engine {

/// The scores of a text from the row of its first token:
///
///   scores = W2 f(W1 x + b1) + b2
///
/// In float32 on the CPU in every precision and for every device, a text at a time in one fixed
/// order of sums, so that the scores depend on the row alone.
///
/// Threads: immutable; lanes share one.
/// Source: transformers 5.17: BertPooler and classifier, RobertaClassificationHead,
/// MPNetClassificationHead, DistilBertForSequenceClassification (f is max(0, x) there).
class ClassificationHead {
 public:
  /// Copies the weights.
  explicit ClassificationHead(const HeadWeights& weights);

  /// Shapes: row [hidden], scores [labels].
  void score(std::span<const float> row, std::span<float> scores) const;

 private:
  using Floats = std::vector<float, CountedAllocator<float>>;

  bool is_relu_;
  Floats dense_;  // [in, out]: W1 transposed, so that the inner loop runs along the outputs
  Floats dense_bias_;
  Floats out_;  // [labels, hidden]
  Floats out_bias_;
};

}  // namespace muster::engine
