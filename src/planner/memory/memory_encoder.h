#pragma once

#include <cstdint>
#include <span>

#include "spec/model_shape.h"

namespace muster {

/// Which of oneDNN's products and of our kernels a CPU runs: they differ in what they pack and in
/// their scratch.
enum class CpuKernels : std::uint8_t {
  Avx2,        // our own fp32 product; no bf16
  Avx512,      // bf16 by way of float32
  Avx512Bf16,  // our own bf16 product, with AMX or without
};

/// How the engine runs an encoder on a CPU.
struct EncoderRun {
  std::uint32_t element_bytes = 4;  // of packed weights and products: 4 (fp32) or 2 (bf16)
  CpuKernels kernels = CpuKernels::Avx512Bf16;
  /// Weights of 8 bits by our own product, on every CPU; rows are float32 (4), and 8 bits in it.
  bool is_int8 = false;
  /// Of the device: a pass is cut for those that are idle when it begins (spec/row_blocks.h).
  std::uint32_t lanes = 1;
};

/// Whether the engine computes this family.
bool is_engine_encoder(const ModelShape& shape);

/// What `muster-worker` holds of the tables: words, positions, the first normalisation and, for
/// MPNet, the relative bias of every offset; float32 in each precision, mapped or copied.
std::uint64_t encoder_table_bytes(const ModelShape& shape);

/// What it holds of one layer: four packed matrices and their biases in the run's precision, and
/// two normalisations in float32. The pooler is not loaded.
///
///   matrix   K inputs, N outputs: fp32 with AVX2 up16(N) K and a bias of up16(N); with AVX-512
///            N K, from 129 inputs on up64(N) up16(K);
///            bf16 up64(N) up2(K) with a bias of up64(N) floats; without bf16 products N K;
///            int8 up32(N) up4(K) with a bias, a scale and a sum of up32(N) each
///
/// Source: ours src/engine/ops/{fp32,bf16,int8}_product.h; oneDNN's measured with torch 2.11
/// (oneDNN 3.10, jit and brgemm inner products).
std::uint64_t encoder_layer_bytes(const ModelShape& shape, const LayerShape& layer,
                                  const EncoderRun& run);

/// The most that one lane holds beside the weights for a batch, over its passes.
///
/// Source: src/engine/models/cpu_encoder.cpp; docs/memory-model.md, "Encoders", draws it.
std::uint64_t encoder_lane_bytes(const ModelShape& shape, std::span<const std::uint32_t> lengths,
                                 const EncoderRun& run);

/// The same for `sequences` texts of `tokens` each.
std::uint64_t encoder_lane_bytes(const ModelShape& shape, std::uint64_t sequences,
                                 std::uint64_t tokens, const EncoderRun& run);

/// The most that loading holds beside the weights: the joined projections of layers not yet packed
/// (all their matrices in float32, where the file has another type), a copy of the matrix that is
/// being packed; or the 512 rows of the self-test with their products. Our own products are
/// packed without a copy and need no self-test.
///
/// Source: src/engine/models/{encoder_weights,cpu_encoder}.cpp, src/engine/ops/row_counts.cpp.
std::uint64_t encoder_load_bytes(const ModelShape& shape, const EncoderRun& run,
                                 bool is_float32_file);

/// A GPU's: everything in one precision. Source: src/engine/models/packed_encoder.cpp.
std::uint64_t gpu_encoder_table_bytes(const ModelShape& shape, std::uint32_t element_bytes);
std::uint64_t gpu_encoder_layer_bytes(const ModelShape& shape, const LayerShape& layer,
                                      std::uint32_t element_bytes);
/// Of the passes that are computed at once, one in each lane, each as large as a batch may be
/// unless the user says otherwise, or as a text of `tokens`. Without cuBLAS's workspaces.
std::uint64_t gpu_encoder_pass_bytes(const ModelShape& shape, std::uint64_t tokens,
                                     std::uint32_t element_bytes);

}  // namespace muster
