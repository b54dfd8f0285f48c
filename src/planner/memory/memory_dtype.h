#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/model_weights.h"
#include "spec/workload.h"

namespace muster {

/// Bytes of an element of a plain float type, by any of the names in use: "bf16" (ours),
/// "bfloat16" (config.json), "BF16" (safetensors). nullopt: no such type.
std::optional<std::uint32_t> float_bytes(std::string_view name);

/// Bytes of an activation: the dtype asked for, else that of config.json, else that of the
/// model's first floating matrix, else 2 (quantised weights are multiplied in 16 bits).
///
/// `workload.dtype` must be a known name.
std::uint32_t activation_bytes(const ModelDescription& model, const Workload& workload);

/// How a cache packs the values of one vector: `bytes` for each started block of `values`, and what
/// it has beside each vector.
struct CacheFormat {
  std::uint32_t values = 1;
  std::uint32_t bytes = 2;
  std::uint32_t vector_bytes = 0;

  /// Of one vector.
  std::uint64_t bytes_of(std::uint64_t value_count) const;
};

/// "fp32", "fp16", "bf16", "fp8" and its two kinds, "int8", which is our own (kv_vector_bytes), and
/// ggml's block types; nullopt: not a type of cache.
///
/// Source: ggml-common.h (block_q4_0 18 bytes, q4_1 20, q5_0 22, q5_1 24, q8_0 34, iq4_nl 18, each
/// for QK 32 values); OCP 8-bit floating point specification 1.0 for fp8.
std::optional<CacheFormat> find_cache_format(std::string_view name);

}  // namespace muster
