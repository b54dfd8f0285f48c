#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "base/result.h"
#include "modelfile/safetensors.h"
#include "spec/encoder_spec.h"

namespace muster::engine {

/// A dense layer. Shapes: weight [out, in], bias [out].
struct LinearWeights {
  at::Tensor weight, bias;
};

/// Shapes: weight and bias [hidden].
struct NormWeights {
  at::Tensor weight, bias;
};

/// One layer of an encoder with the normalisations after the sums ("post-LN"), as all families
/// here.
struct LayerWeights {
  LinearWeights qkv;  // query, key and value side by side: [3 x hidden, hidden]
  LinearWeights attention_out;
  NormWeights attention_norm;
  LinearWeights up;
  LinearWeights down;
  NormWeights out_norm;
};

/// The head of a cross-encoder. Shapes: dense [hidden, hidden], out [labels, hidden].
struct HeadWeights {
  LinearWeights dense;
  LinearWeights out;
  bool is_relu = false;  // between the two; else tanh
};

/// All weights of an encoder in float32 on the CPU, by role instead of by a family's names.
///
/// Owner: the tensors of a float32 file are views into `files`, so that the vocabulary is not
/// copied and is shared by processes; `files` must outlive them.
struct EncoderWeights {
  at::Tensor words;             // [vocab, hidden]
  at::Tensor positions;         // [lengths, hidden]: from the first usable one, token type 0 added
  at::Tensor padding;           // [hidden]: the position of the padding id, token type 0 added
  at::Tensor second_positions;  // as `positions`, with token type 1; undefined where never asked
  NormWeights embedding_norm;
  at::Tensor relative_bias;  // [buckets, heads]; undefined without one
  std::vector<LayerWeights> layers;
  std::optional<HeadWeights> head;
  ModelWeights files;
};

/// Finds every tensor of the family, with or without its prefix ("bert."), and checks its shape;
/// with `rerank` also those of the classification head.
///
/// Errors: Corrupt (a missing or misshapen tensor, by name), Unsupported (a dtype other than
/// float).
Result<EncoderWeights> collect_weights(const EncoderSpec& encoder, ModelWeights files,
                                       const std::optional<RerankSpec>& rerank = std::nullopt);

}  // namespace muster::engine
