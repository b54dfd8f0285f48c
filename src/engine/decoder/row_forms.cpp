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
  if (forms.blocks) blocks_ = CountedArray<ActivationBlock>(row_count_max * block_count_);
}

ActivationBlock* RowBuffer::blocks_of(const RowPiece& piece) {
  return blocks_.get() + piece.row * block_count_ + piece.begin / kBlockInputs;
}

void RowBuffer::put(const DecoderKernels& kernels, const RowPiece& piece, const float* values) {
  const auto [index, begin, count] = piece;
  if (fp32_.size() > 0 && values != row(index) + begin) {
    std::copy_n(values, count, row(index) + begin);
  }
  if (bf16_.size() > 0) {
    auto* to = bf16_.get() + index * bf16_size_;
    kernels.narrow(count, values, to + begin);
    if (begin + count == size_ && bf16_size_ > size_) to[size_] = Bfloat16{};
  }
  if (blocks_.size() == 0) return;
  auto* blocks = blocks_of(piece);
  const std::size_t whole = count / kBlockInputs * kBlockInputs;
  kernels.quantize(whole, values, blocks);
  if (whole == count) return;
  float last[kBlockInputs] = {};
  std::copy(values + whole, values + count, last);
  kernels.quantize(kBlockInputs, last, blocks + whole / kBlockInputs);
}

void RowBuffer::put_gated(const DecoderKernels& kernels, DecoderActivation activation,
                          const RowPiece& piece, float* gate, const float* up) {
  const bool is_blocks_alone = blocks_.size() > 0 && fp32_.size() == 0 && bf16_.size() == 0;
  if (is_blocks_alone && up != nullptr && piece.count % (2 * kBlockInputs) == 0) {
    return kernels.gate_blocks(activation, piece.count, gate, up, blocks_of(piece));
  }
  kernels.gate(activation, piece.count, gate, up);
  put(kernels, piece, gate);
}

ProductRows RowBuffer::rows(std::size_t begin, std::size_t count) const {
  const auto at = [](const auto& array, std::size_t index) {
    return array.size() == 0 ? nullptr : array.get() + index;
  };
  return {.count = count,
          .fp32 = at(fp32_, begin * size_),
          .bf16 = at(bf16_, begin * bf16_size_),
          .blocks = at(blocks_, begin * block_count_)};
}

}  // namespace muster::engine
