// Keys and values by block, layer and head; keys transposed, so that 16 positions are one vector.

#include "engine/decoder/kv_pool.h"

namespace muster::engine {
namespace {

// Kernels read whole vectors, so up to this many elements behind the last head.
constexpr std::size_t kReadAhead = 16;

float converted(float value, float /*like*/) { return value; }
Float16 converted(float value, Float16 /*like*/) { return to_float16(value); }

template <typename T>
void put_head(const float* keys, const float* values, std::size_t head_size, std::size_t place,
              T* to) {
  for (std::size_t c = 0; c < head_size; ++c) {
    to[c * kKvBlockTokens + place] = converted(keys[c], T{});
  }
  to += head_size * kKvBlockTokens + place * head_size;
  for (std::size_t c = 0; c < head_size; ++c) to[c] = converted(values[c], T{});
}

}  // namespace

std::uint64_t kv_block_bytes(const DecoderSpec& spec, bool is_wide) {
  return 2 * std::uint64_t{spec.layer_count} * spec.kv_head_count * spec.head_size *
         kKvBlockTokens * (is_wide ? sizeof(float) : sizeof(Float16));
}

KvPool::KvPool(const DecoderSpec& spec, std::size_t block_count, bool is_wide)
    : block_count_(block_count),
      block_size_(kv_block_bytes(spec, /*is_wide=*/true) / sizeof(float)),
      kv_head_count_(spec.kv_head_count),
      head_size_(spec.head_size),
      is_wide_(is_wide) {
  const std::size_t count = block_count * block_size_ + kReadAhead;
  if (is_wide) {
    wide_ = CountedArray<float>(count);
  } else {
    narrow_ = CountedArray<Float16>(count);
  }
}

void KvPool::put(std::uint32_t block, std::size_t place, std::size_t layer, const float* keys,
                 const float* values) {
  for (std::size_t head = 0; head < kv_head_count_; ++head) {
    const std::size_t at = block * block_size_ + offset(layer, head);
    const std::size_t from = head * head_size_;
    if (is_wide_) {
      put_head(keys + from, values + from, head_size_, place, wide_.get() + at);
    } else {
      put_head(keys + from, values + from, head_size_, place, narrow_.get() + at);
    }
  }
}

PagedHead<float> KvPool::wide_head(std::span<const std::uint32_t> blocks, std::size_t layer,
                                   std::size_t kv_head) const {
  return {wide_.get(), blocks, block_size_, offset(layer, kv_head), head_size_};
}

PagedHead<Float16> KvPool::head(std::span<const std::uint32_t> blocks, std::size_t layer,
                                std::size_t kv_head) const {
  return {narrow_.get(), blocks, block_size_, offset(layer, kv_head), head_size_};
}

}  // namespace muster::engine
