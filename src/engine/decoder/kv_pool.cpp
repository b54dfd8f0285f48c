// Keys and values by block, layer and head; keys transposed, so that 16 positions are one vector.

#include "engine/decoder/kv_pool.h"

#include <algorithm>

#include "base/check.h"

namespace muster::engine {
namespace {

// Kernels read whole vectors, so up to this many elements behind the last head.
constexpr std::size_t kReadAhead = 16;

void put_floats(const float* keys, const float* values, std::size_t head_size, std::size_t place,
                float* to) {
  for (std::size_t c = 0; c < head_size; ++c) to[c * kKvBlockTokens + place] = keys[c];
  std::copy_n(values, head_size, to + head_size * kKvBlockTokens + place * head_size);
}

void put_quants(const DecoderKernels& kernels, const float* keys, const float* values,
                std::size_t head_size, std::size_t place, std::int8_t* to, float* scales) {
  const auto quantize = kernels.quantize_head;
  std::int8_t* row = to + head_size * kKvBlockTokens + place * head_size;
  scales[place] = quantize(head_size, keys, row);
  for (std::size_t c = 0; c < head_size; ++c) to[c * kKvBlockTokens + place] = row[c];
  scales[kKvBlockTokens + place] = quantize(head_size, values, row);
}

}  // namespace

std::uint64_t kv_block_bytes(const DecoderSpec& spec, KvCacheDtype kept) {
  return 2 * std::uint64_t{spec.layer_count} * spec.kv_head_count * kKvBlockTokens *
         kv_vector_bytes(kept, spec.head_size);
}

KvPool::KvPool(const DecoderSpec& spec, std::size_t block_count, KvCacheDtype kept,
               const DecoderKernels& kernels)
    : kernels_(&kernels),
      block_count_(block_count),
      block_size_(kv_block_bytes(spec, KvCacheDtype::Fp32) / sizeof(float)),
      kv_head_count_(spec.kv_head_count),
      head_size_(spec.head_size),
      block_bytes_(kv_block_bytes(spec, kept)),
      kept_(kept) {
  MUSTER_CHECK(kept != KvCacheDtype::Auto);
  const std::size_t count = block_count * block_size_ + kReadAhead;
  if (kept == KvCacheDtype::Fp32) {
    wide_ = CountedArray<float>(count);
  } else if (kept == KvCacheDtype::Fp16) {
    narrow_ = CountedArray<Float16>(count);
  } else {
    quants_ = CountedArray<std::int8_t>(count);
    scales_ = CountedArray<float>(block_count * block_size_ / head_size_);
  }
}

void KvPool::put(std::uint32_t block, std::size_t place, std::size_t layer, const float* keys,
                 const float* values) {
  for (std::size_t head = 0; head < kv_head_count_; ++head) {
    const std::size_t at = block * block_size_ + offset(layer, head);
    const std::size_t from = head * head_size_;
    if (kept_ == KvCacheDtype::Fp32) {
      put_floats(keys + from, values + from, head_size_, place, wide_.get() + at);
    } else if (kept_ == KvCacheDtype::Fp16) {
      kernels_->keep_fp16(head_size_, place, keys + from, values + from, narrow_.get() + at);
    } else {
      put_quants(*kernels_, keys + from, values + from, head_size_, place, quants_.get() + at,
                 scales_.get() + at / head_size_);
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

PagedHead<std::int8_t> KvPool::quant_head(std::span<const std::uint32_t> blocks, std::size_t layer,
                                          std::size_t kv_head) const {
  return {quants_.get(), blocks, block_size_, offset(layer, kv_head), head_size_, scales_.get()};
}

std::size_t KvPool::element_bytes() const {
  if (kept_ == KvCacheDtype::Fp32) return sizeof(float);
  return kept_ == KvCacheDtype::Fp16 ? sizeof(Float16) : sizeof(std::int8_t);
}

std::span<const std::byte> KvPool::bytes_of(std::uint32_t block, std::size_t layer,
                                            std::size_t kv_head) const {
  const auto* begin = kept_ == KvCacheDtype::Fp32 ? reinterpret_cast<const std::byte*>(wide_.get())
                      : kept_ == KvCacheDtype::Fp16
                          ? reinterpret_cast<const std::byte*>(narrow_.get())
                          : reinterpret_cast<const std::byte*>(quants_.get());
  const std::size_t at = block * block_size_ + offset(layer, kv_head);
  return {begin + at * element_bytes(), head_elements() * element_bytes()};
}

}  // namespace muster::engine
