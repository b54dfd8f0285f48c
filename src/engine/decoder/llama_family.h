#pragma once

#include "base/result.h"
#include "engine/decoder/decoder_tensors.h"

namespace muster::engine {

/// Llama and what has grown from it: Mistral, Qwen2, Qwen3 (a norm of each query and key head),
/// Phi-3 (query, key and value in one tensor, and gate and up), Gemma 2 (a norm behind each part
/// too) and Mixtral (experts). RMS norms, rotary positions, grouped heads of keys, gated
/// feed-forward parts.
///
/// Source: transformers 5.17, modeling_{llama,mistral,qwen2,qwen3,phi3,gemma2,mixtral}.py; the
/// names of GGUF files: gguf-py, constants.py.
Result<DecoderTensors> llama_tensors(const WeightLoading& loading);

}  // namespace muster::engine
