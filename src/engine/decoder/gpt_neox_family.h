#pragma once

#include "base/result.h"
#include "engine/decoder/decoder_weights.h"

namespace muster::engine {

/// GPT-NeoX and Pythia: a part of each head turns, and both parts of a layer read its input.
/// Hugging Face stores query, key and value head by head.
///
/// Source: transformers 5.17, modeling_gpt_neox.py; gguf-py, constants.py.
Result<DecoderWeights> load_gpt_neox_family(const WeightLoading& loading);

}  // namespace muster::engine
