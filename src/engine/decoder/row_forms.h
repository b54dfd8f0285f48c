#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops/counted_array.h"
#include "engine/ops/decoder_kernels.h"

namespace muster::engine {

/// The forms of rows that products read.
struct RowForms {
  bool fp32 = false;
  bool bf16 = false;
  bool blocks = false;       // quants of 8 bits in blocks of 32, the last one with zeros at its end
  bool transformed = false;  // and in blocks of 64, transformed

  static RowForms of(WeightFormat format) {
    return {.fp32 = format == WeightFormat::Fp32,
            .bf16 = format == WeightFormat::Bf16,
            .blocks = is_blocked(format) && format != WeightFormat::Int8,
            .transformed = format == WeightFormat::Int8};
  }
  RowForms operator|(const RowForms& other) const {
    return {fp32 || other.fp32, bf16 || other.bf16, blocks || other.blocks,
            transformed || other.transformed};
  }
  /// A piece of a row begins at a multiple of so many columns.
  std::size_t block_inputs() const { return transformed ? kTransformedInputs : kBlockInputs; }
};

/// Columns [begin, begin + count) of a row.
struct RowPiece {
  std::size_t row = 0;
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// Rows on their way into a product, in the forms that are read there.
///
/// Threads: different rows, and different pieces of one, may be filled at once.
class RowBuffer {
 public:
  RowBuffer() = default;
  /// Makes room for so many rows, in these forms.
  RowBuffer(std::size_t row_count_max, std::size_t size, RowForms forms);

  std::size_t size() const { return size_; }
  /// Needs: float32 among the forms.
  float* row(std::size_t index) { return fp32_.get() + index * size_; }

  /// A piece of a row in every form. begin: a multiple of the forms' `block_inputs`; count: one as
  /// well, or up to the row's end. values: elsewhere, or the piece's own float32.
  void put(const DecoderKernels& kernels, const RowPiece& piece, const float* values);

  /// Puts activation(gate) up, or without `up` activation(gate), as `put` puts values; `gate` may
  /// be written over.
  void put_gated(const DecoderKernels& kernels, DecoderActivation activation, const RowPiece& piece,
                 float* gate, const float* up);

  /// The rows [begin, begin + count) as a product reads them.
  ProductRows rows(std::size_t begin, std::size_t count) const;

 private:
  ActivationBlock* blocks_of(const RowPiece& piece);
  TransformedBlock* transformed_of(const RowPiece& piece);

  std::size_t size_ = 0;
  std::size_t bf16_size_ = 0;          // rounded up to a pair
  std::size_t block_count_ = 0;        // rounded up
  std::size_t transformed_count_ = 0;  // rounded up
  CountedArray<float> fp32_;
  CountedArray<Bfloat16> bf16_;
  CountedArray<ActivationBlock> blocks_;
  CountedArray<TransformedBlock> transformed_;
};

}  // namespace muster::engine
