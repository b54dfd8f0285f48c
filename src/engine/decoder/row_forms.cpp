// Rows in every form that some product of theirs reads.

#include "engine/decoder/row_forms.h"

#include <algorithm>

namespace muster::engine {
namespace {

/// `quantize`s values in blocks of kInputs, the last one with zeros at its end.
template <std::size_t kInputs, typename Block>
void put_blocks(void (*quantize)(std::size_t, const float*, Block*), const float* values,
                std::size_t count, Block* blocks) {
  const std::size_t whole = count / kInputs * kInputs;
  quantize(whole, values, blocks);
  if (whole == count) return;
  float last[kInputs] = {};
  std::copy(values + whole, values + count, last);
  quantize(kInputs, last, blocks + whole / kInputs);
}

}  // namespace

RowBuffer::RowBuffer(std::size_t row_count_max, std::size_t size, RowForms forms)
    : size_(size),
      bf16_size_((size + 1) / 2 * 2),
      block_count_((size + kBlockInputs - 1) / kBlockInputs),
      transformed_count_((size + kTransformedInputs - 1) / kTransformedInputs) {
  if (forms.fp32) fp32_ = CountedArray<float>(row_count_max * size);
  if (forms.bf16) bf16_ = CountedArray<Bfloat16>(row_count_max * bf16_size_);
  if (forms.blocks) blocks_ = CountedArray<ActivationBlock>(row_count_max * block_count_);
  if (forms.transformed) {
    transformed_ = CountedArray<TransformedBlock>(row_count_max * transformed_count_);
  }
}

ActivationBlock* RowBuffer::blocks_of(const RowPiece& piece) {
  return blocks_.get() + piece.row * block_count_ + piece.begin / kBlockInputs;
}

TransformedBlock* RowBuffer::transformed_of(const RowPiece& piece) {
  return transformed_.get() + piece.row * transformed_count_ + piece.begin / kTransformedInputs;
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
  if (blocks_.size() > 0) {
    put_blocks<kBlockInputs>(kernels.quantize, values, count, blocks_of(piece));
  }
  if (transformed_.size() > 0) {
    put_blocks<kTransformedInputs>(kernels.quantize_transformed, values, count,
                                   transformed_of(piece));
  }
}

void RowBuffer::put_gated(const DecoderKernels& kernels, DecoderActivation activation,
                          const RowPiece& piece, float* gate, const float* up) {
  const bool has_floats = fp32_.size() > 0 || bf16_.size() > 0;
  const bool is_gated = up != nullptr && !has_floats;
  if (is_gated && piece.count % (2 * kBlockInputs) == 0 && blocks_.size() > 0 &&
      transformed_.size() == 0) {
    return kernels.gate_blocks(activation, piece.count, gate, up, blocks_of(piece));
  }
  if (is_gated && piece.count % kTransformedInputs == 0 && transformed_.size() > 0 &&
      blocks_.size() == 0) {
    return kernels.gate_transformed(activation, piece.count, gate, up, transformed_of(piece));
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
          .blocks = at(blocks_, begin * block_count_),
          .transformed = at(transformed_, begin * transformed_count_)};
}

}  // namespace muster::engine
