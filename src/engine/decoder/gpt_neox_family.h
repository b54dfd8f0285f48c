#pragma once

#include "base/result.h"
#include "engine/decoder/decoder_tensors.h"

namespace muster::engine {

/// GPT-NeoX and Pythia: a part of each head turns, and both parts of a layer read its input.
/// Hugging Face stores query, key and value head by head.
///
/// Source: transformers 5.17, modeling_gpt_neox.py; gguf-py, constants.py.
Result<DecoderTensors> gpt_neox_tensors(const WeightLoading& loading);

}  // namespace muster::engine
