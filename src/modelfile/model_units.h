#pragma once

#include "base/result.h"
#include "modelfile/transformer_config.h"
#include "spec/model_weights.h"

namespace muster {

/// Groups `model.tensors` into the chain of units of the family: Embedding, a Block per layer, Head
/// (left out where nothing follows the last block). Sets `units` and `tied_bytes`, and, where the
/// tensors were read from files, whether the head is tied.
///
/// Unit and module names are those of the class that the config names, whatever prefix the file
/// uses. Errors: Corrupt when a block, the embedding or an untied head has no tensor.
Status group_into_units(const TransformerConfig& config, ModelDescription& model);

}  // namespace muster
