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

/// A matrix from NAME.weight and, if asked for, NAME.bias, packed behind what `to` has; its pages
/// of the file are let go.
Status load_linear(const WeightLoading& loading, const std::string& name, std::size_t rows,
                   std::size_t columns, bool has_bias, PanelMatrix& to, const RowOrder& order = {});

/// The order that puts the pairs of a head's first `rope.size` outputs into halves; none where the
/// file has halves already.
RowOrder rope_order(const DecoderSpec& spec);

/// The head: the tensor NAME where it is there and the spec does not tie it, else the table's.
Status load_head(const WeightLoading& loading, const std::string& name, DecoderWeights& weights);

}  // namespace muster::engine
