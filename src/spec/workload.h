#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// What a model is to do.
enum class PlanTask : std::uint8_t { Embed, Generate, Train };

/// How weights and their optimizer states are kept while training.
enum class TrainingPrecision : std::uint8_t {
  Fp32,           // weights, gradients and both AdamW moments in float32: 16 bytes a parameter
  Mixed,          // 16-bit weights and gradients, float32 master weights and moments: 16
  MixedFp32Grad,  // the same with float32 gradients: 18
  Bf16,           // everything in bfloat16: 8
};

struct TrainingOptions {
  TrainingPrecision precision = TrainingPrecision::Mixed;
  std::uint32_t zero_stage = 0;     // 0 to 3 (ZeRO, arXiv 1910.02054)
  std::uint32_t data_parallel = 1;  // ranks over which the ZeRO stage divides
  bool recompute = false;           // activations recomputed in the backward pass
  bool flash_attention = true;      // the attention matrix is never kept
  std::uint32_t microbatches = 1;   // in flight under pipeline parallelism
};

/// The load that a plan must carry.
struct Workload {
  PlanTask task = PlanTask::Generate;
  std::uint32_t batch = 1;           // sequences at once
  std::uint32_t context = 0;         // tokens of a sequence, prompt and answer; 0: the model's
  std::uint32_t prefill_tokens = 0;  // of one sequence in one step; 0: the whole context
  bool all_logits = false;           // logits of every prefill token, not of the last alone
  bool math_attention = false;       // the attention matrix is made in memory
  std::optional<std::string> dtype;  // weights converted at load: "fp32", "bf16", "fp16", an
                                     // encoder's "int8"; none: as stored
  std::string kv_dtype = "auto";     // auto: as the activations; "int8", "fp8", "q8_0", "fp16", …
  std::uint32_t kv_block = 16;       // tokens a paged cache allocates at once; 1: not paged
  bool cache_keeps_window_only = true;  // false: a sliding window's layer keeps every token
  TrainingOptions training;
};

}  // namespace muster
