#pragma once

#include <cstddef>

#include "base/result.h"
#include "engine/decoder/decoder_tensors.h"

namespace muster::engine {

/// Finds the router and the experts of a layer of Mixtral, which stand in for `up` and `down`. They
/// are stored in four ways:
///
///   Hugging Face, as published    block_sparse_moe.gate, experts.E.w1 (gate), w3 (up), w2 (down)
///   Hugging Face, merged          mlp.gate, mlp.experts.gate_up_proj [experts, 2 x inner, hidden]
///                                 and down_proj: how transformers 5 keeps them
///   GGUF                          ffn_gate_inp, ffn_gate_exps, ffn_up_exps and ffn_down_exps
///                                 [experts, rows, columns]
///   GGUF before April 2024        ffn_gate_inp, ffn_gate.E, ffn_up.E, ffn_down.E
///
/// Errors: those of TensorSource. Source: transformers 5.17, conversion_mapping.py, "mixtral";
/// llama.cpp, llama-arch.cpp, LLM_TENSOR_FFN_GATE_EXPS and LLM_TENSOR_FFN_GATE_EXP.
Status find_mixtral_experts(const WeightLoading& loading, std::size_t layer, LayerTensors& to);

}  // namespace muster::engine
