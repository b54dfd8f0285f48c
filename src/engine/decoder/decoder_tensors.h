#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/decoder/tensor_source.h"
#include "spec/decoder_spec.h"

namespace muster::engine {

/// Which row of a file's tensor gives an output: for orders of outputs that are not the file's.
/// Empty: its own.
using RowOrder = std::function<std::size_t(std::size_t output)>;

/// A dense layer as its file has it.
struct DensePart {
  SourceMatrix matrix;
  std::vector<float> bias = {};  // [rows], or empty
  RowOrder order = {};           // of matrix and bias

  std::size_t source_row(std::size_t output) const { return order ? order(output) : output; }
};

/// One dense layer, or several that read the same rows, side by side: query, key and value; gate
/// and up.
struct DenseTensors {
  std::vector<DensePart> parts;
};

/// Shapes: weight [size]; bias [size], zeros where the family has none.
struct NormVectors {
  std::vector<float> weight, bias;
  bool is_there() const { return !weight.empty(); }
};

/// An expert: a feed-forward part that some tokens go through.
template <typename Matrix>
struct ExpertOf {
  Matrix up;  // gated: gate and up side by side
  Matrix down;
};

/// One layer, its dense layers in the form of `Matrix`; what a family does not have is empty.
template <typename Matrix>
struct DecoderLayerOf {
  NormVectors attention_norm;        // before attention
  Matrix qkv;                        // heads of queries, of keys, of values
  NormVectors query_norm, key_norm;  // of each head
  Matrix attention_out;
  NormVectors attention_post_norm;
  NormVectors feed_forward_norm;
  Matrix up;  // gated: gate and up side by side
  Matrix down;
  // Or instead of these two; without a norm behind them:
  Matrix router;  // [experts, hidden]
  std::vector<ExpertOf<Matrix>> experts;
  NormVectors feed_forward_post_norm;
};

/// A decoder, whatever its family and file: halves of a head are turned together
/// (`RopeStyle::Halves`), norm weights have the family's offset added.
template <typename Matrix>
struct DecoderWeightsOf {
  SourceMatrix embedding;                 // [vocab, hidden]
  std::optional<SourceMatrix> positions;  // [rows, hidden]: learned ones
  std::vector<DecoderLayerOf<Matrix>> layers;
  NormVectors final_norm;
  Matrix head;  // [vocab, hidden]
};

/// Where everything is in the files. Norms and biases are read; of a matrix no page is.
using LayerTensors = DecoderLayerOf<DenseTensors>;
using DecoderTensors = DecoderWeightsOf<DenseTensors>;

/// Where the families find everything.
struct WeightLoading {
  const DecoderSpec& spec;
  const TensorSource& source;
};

/// Finds the tensors of the spec's family. The source must outlive them.
///
/// Errors: Corrupt (a missing or misshapen tensor, by name); Unsupported (a type of tensor).
Result<DecoderTensors> find_decoder_tensors(const WeightLoading& loading);

}  // namespace muster::engine
