#pragma once

#include "base/result.h"
#include "engine/decoder/decoder_tensors.h"

namespace muster::engine {

/// GPT-2: learned positions, layer norms with biases, query, key and value in one tensor, all of
/// whose matrices Hugging Face stores as [in, out].
///
/// Source: transformers 5.17, modeling_gpt2.py; gguf-py, constants.py.
Result<DecoderTensors> gpt2_tensors(const WeightLoading& loading);

}  // namespace muster::engine
