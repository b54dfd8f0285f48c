#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/decoder/decoder_tensors.h"

namespace muster::engine {

// What the families share. All errors are those of TensorSource.

/// "model.layers.3." + name, or "blk.3." + name.
std::string layer_name(const DecoderSpec& spec, std::string_view hugging_face_prefix,
                       std::size_t layer, std::string_view name);

/// A norm over `size` elements from NAME.weight and, where the kind has one, NAME.bias; ones and
/// zeros where the spec says that the norms have no weights.
Result<NormVectors> read_norm(const WeightLoading& loading, const std::string& name,
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

/// Puts it behind what `to` has.
Status find_linear(const WeightLoading& loading, const LinearTensor& tensor, DenseTensors& to);

/// The order that puts the pairs of a head's first `rope.size` outputs into halves; none where the
/// file has halves already.
RowOrder rope_order(const DecoderSpec& spec);

/// The head: the tensor NAME, or the table where the spec ties them.
Status find_head(const WeightLoading& loading, const std::string& name, DecoderTensors& tensors);

}  // namespace muster::engine
