#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/decoder/decoder_weights.h"

namespace muster::engine {

// What the families' loaders share. All errors are those of TensorSource and PanelMatrix.

/// "model.layers.3." + name, or "blk.3." + name.
std::string layer_name(const DecoderSpec& spec, std::string_view hugging_face_prefix,
                       std::size_t layer, std::string_view name);

/// A norm over `size` elements from NAME.weight and, where the kind has one, NAME.bias; ones and
/// zeros where the spec says that the norms have no weights.
Result<NormVectors> load_norm(const WeightLoading& loading, const std::string& name,
                              std::size_t size);

/// A dense layer of a file.
struct LinearTensor {
  std::string name;  // of NAME.weight and, where it has one, NAME.bias
  std::size_t rows = 0;
  std::size_t columns = 0;
  bool has_bias = false;
  RowOrder order = {};
  bool is_transposed = false;  // stored [columns, rows]
};

/// Packs it behind what `to` has; its pages of the file are let go.
Status load_linear(const WeightLoading& loading, const LinearTensor& tensor, PanelMatrix& to);

/// The order that puts the pairs of a head's first `rope.size` outputs into halves; none where the
/// file has halves already.
RowOrder rope_order(const DecoderSpec& spec);

/// The head: the tensor NAME, or the table where the spec ties them.
Status load_head(const WeightLoading& loading, const std::string& name, DecoderWeights& weights);

}  // namespace muster::engine
