#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/ops/counted_array.h"
#include "engine/ops/decoder_kernels.h"
#include "spec/decoder_spec.h"

namespace muster::engine {

/// What the keys and values of 16 positions take across all layers:
///
///   bytes = 2 (keys and values) x layers x kv_heads x head_size x bytes_per_element x 16
///
/// Source: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving",
/// section 3.
std::uint64_t kv_block_bytes(const DecoderSpec& spec, bool is_wide);

/// The keys and values of all sequences, in blocks of 16 positions (`PagedHead` says how a block is
/// laid out). Which sequence has which blocks is the caller's affair.
///
/// Memory that was never written is not resident: the pages of a block come with its first token.
/// Threads: `put` and reads of different positions at once.
class KvPool {
 public:
  KvPool() = default;
  /// is_wide: float32, else float16.
  KvPool(const DecoderSpec& spec, std::size_t block_count, bool is_wide);

  std::size_t block_count() const { return block_count_; }
  std::uint64_t block_bytes() const { return block_size_ * (is_wide_ ? 4 : 2); }
  bool is_wide() const { return is_wide_; }

  /// Writes one position of one layer. Shapes: keys and values [kv_heads, head_size].
  void put(std::uint32_t block, std::size_t place, std::size_t layer, const float* keys,
           const float* values);

  /// For `attend_fp32` of a wide pool, or `attend_fp16` of another.
  PagedHead<float> wide_head(std::span<const std::uint32_t> blocks, std::size_t layer,
                             std::size_t kv_head) const;
  PagedHead<Float16> head(std::span<const std::uint32_t> blocks, std::size_t layer,
                          std::size_t kv_head) const;

 private:
  std::size_t offset(std::size_t layer, std::size_t kv_head) const {
    return (layer * kv_head_count_ + kv_head) * head_elements();
  }
  std::size_t head_elements() const { return 2 * head_size_ * kKvBlockTokens; }

  std::size_t block_count_ = 0;
  std::size_t block_size_ = 0;  // elements
  std::size_t kv_head_count_ = 0;
  std::size_t head_size_ = 0;
  bool is_wide_ = false;
  CountedArray<float> wide_;
  CountedArray<Float16> narrow_;
};

}  // namespace muster::engine
