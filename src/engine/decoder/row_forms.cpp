// Rows in every form that some product of theirs reads.

#include "engine/decoder/row_forms.h"

#include <algorithm>

namespace muster::engine {

RowBuffer::RowBuffer(std::size_t row_count_max, std::size_t size, RowForms forms)
    : size_(size),
      bf16_size_((size + 1) / 2 * 2),
      block_count_((size + kBlockInputs - 1) / kBlockInputs) {
  if (forms.fp32) fp32_ = CountedArray<float>(row_count_max * size);
  if (forms.bf16) bf16_ = CountedArray<Bfloat16>(row_count_max * bf16_size_);
  if (forms.blocks) {
    quants_ = CountedArray<std::int8_t>(row_count_max * block_count_ * kBlockInputs);
    scales_ = CountedArray<float>(row_count_max * block_count_);
    sums_ = CountedArray<std::int32_t>(row_count_max * block_count_);
    scaled_sums_ = CountedArray<float>(row_count_max * block_count_);
  }
}

void RowBuffer::make_forms(const DecoderKernels& kernels, std::size_t index) {
  fill(kernels, index, 0, size_, row(index));
}

void RowBuffer::put(const DecoderKernels& kernels, std::size_t index, std::size_t begin,
                    std::size_t count, const float* values) {
  if (fp32_.size() > 0) std::copy_n(values, count, row(index) + begin);
  fill(kernels, index, begin, count, values);
}

// The forms but float32.
void RowBuffer::fill(const DecoderKernels& kernels, std::size_t index, std::size_t begin,
                     std::size_t count, const float* values) {
  if (bf16_.size() > 0) {
    auto* to = bf16_.get() + index * bf16_size_;
    kernels.narrow(count, values, to + begin);
    if (begin + count == size_ && bf16_size_ > size_) to[size_] = Bfloat16{};
  }
  if (quants_.size() == 0) return;
  const auto quantize = [&](std::size_t size, const float* from, std::size_t block) {
    kernels.quantize(size, from, quants_.get() + block * kBlockInputs, scales_.get() + block,
                     sums_.get() + block, scaled_sums_.get() + block);
  };
  const std::size_t first = index * block_count_ + begin / kBlockInputs;
  const std::size_t whole = count / kBlockInputs * kBlockInputs;
  quantize(whole, values, first);
  if (whole == count) return;
  float last[kBlockInputs] = {};
  std::copy(values + whole, values + count, last);
  quantize(kBlockInputs, last, first + whole / kBlockInputs);
}

ProductRows RowBuffer::rows(std::size_t begin, std::size_t count) const {
  const auto at = [](const auto& array, std::size_t index) {
    return array.size() == 0 ? nullptr : array.get() + index;
  };
  const std::size_t block = begin * block_count_;
  return {.count = count,
          .fp32 = at(fp32_, begin * size_),
          .bf16 = at(bf16_, begin * bf16_size_),
          .quants = at(quants_, block * kBlockInputs),
          .scales = at(scales_, block),
          .sums = at(sums_, block),
          .scaled_sums = at(scaled_sums_, block)};
}

}  // namespace muster::engine
