#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/ops/counted_array.h"
#include "engine/ops/decoder_kernels.h"
#include "spec/decoder_spec.h"
#include "spec/generation.h"

namespace muster::engine {

/// What the keys and values of 16 positions take across all layers:
///
///   bytes = 2 (keys and values) x layers x kv_heads x 16 x kv_vector_bytes
///
/// Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving",
/// section 3.
std::uint64_t kv_block_bytes(const DecoderSpec& spec, KvCacheDtype kept);

/// The keys and values of all sequences, in blocks of 16 positions (`PagedHead` says how a block is
/// laid out). Which sequence has which blocks is the caller's affair.
///
/// In 8 bits each head's vector of a position is rounded by itself (DecoderKernels::quantize_head):
/// what is kept of a token depends on the token's own keys and values, not on its place, on what
/// else is in the block, or on when it came.
///
/// Memory that was never written is not resident: the pages of a block come with its first token.
/// Threads: `put` and reads of different positions at once.
class KvPool {
 public:
  KvPool() = default;
  /// kept: not Auto; kernels: those that will read it.
  KvPool(const DecoderSpec& spec, std::size_t block_count, KvCacheDtype kept,
         const DecoderKernels& kernels);

  std::size_t block_count() const { return block_count_; }
  std::uint64_t block_bytes() const { return block_bytes_; }
  KvCacheDtype kept() const { return kept_; }

  /// Writes one position of one layer. Shapes: keys and values [kv_heads, head_size].
  void put(std::uint32_t block, std::size_t place, std::size_t layer, const float* keys,
           const float* values);

  /// For `attend_fp32` of a pool in fp32, `attend_fp16` in fp16 and `attend_int8` in int8.
  PagedHead<float> wide_head(std::span<const std::uint32_t> blocks, std::size_t layer,
                             std::size_t kv_head) const;
  PagedHead<Float16> head(std::span<const std::uint32_t> blocks, std::size_t layer,
                          std::size_t kv_head) const;
  PagedHead<std::int8_t> quant_head(std::span<const std::uint32_t> blocks, std::size_t layer,
                                    std::size_t kv_head) const;

  /// The keys and values of one block, layer and head, without their scales; and what lies between
  /// two layers.
  std::span<const std::byte> bytes_of(std::uint32_t block, std::size_t layer,
                                      std::size_t kv_head) const;
  std::size_t layer_bytes() const { return kv_head_count_ * head_elements() * element_bytes(); }

 private:
  std::size_t element_bytes() const;
  std::size_t offset(std::size_t layer, std::size_t kv_head) const {
    return (layer * kv_head_count_ + kv_head) * head_elements();
  }
  std::size_t head_elements() const { return 2 * head_size_ * kKvBlockTokens; }

  const DecoderKernels* kernels_ = nullptr;
  std::size_t block_count_ = 0;
  std::size_t block_size_ = 0;  // elements
  std::size_t kv_head_count_ = 0;
  std::size_t head_size_ = 0;
  std::uint64_t block_bytes_ = 0;
  KvCacheDtype kept_ = KvCacheDtype::Fp16;
  CountedArray<float> wide_;
  CountedArray<Float16> narrow_;
  CountedArray<std::int8_t> quants_;
  CountedArray<float> scales_;  // of quants_, one for each head_size of them
};

}  // namespace muster::engine
