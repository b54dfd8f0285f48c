#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops/counted_array.h"
#include "engine/ops/decoder_kernels.h"

namespace muster::engine {

/// The forms of rows that products read; float32 is always there.
struct RowForms {
  bool bf16 = false;
  bool blocks = false;  // quants of 8 bits in blocks of 32, the last one with zeros at its end

  static RowForms of(WeightFormat format) {
    return {.bf16 = format == WeightFormat::Bf16, .blocks = is_blocked(format)};
  }
  RowForms operator|(const RowForms& other) const {
    return {bf16 || other.bf16, blocks || other.blocks};
  }
};

/// Rows on their way into a product: float32, and the forms made of it.
///
/// Threads: `make_forms` of different rows may run at once.
class RowBuffer {
 public:
  RowBuffer() = default;
  /// Makes room for so many rows, in these forms.
  RowBuffer(std::size_t row_count_max, std::size_t size, RowForms forms);

  std::size_t size() const { return size_; }
  float* row(std::size_t index) { return fp32_.get() + index * size_; }

  /// Fills the other forms of a row from its float32.
  void make_forms(const DecoderKernels& kernels, std::size_t index);

  /// The rows [begin, begin + count) as a product reads them.
  ProductRows rows(std::size_t begin, std::size_t count) const;

 private:
  std::size_t size_ = 0;
  std::size_t bf16_size_ = 0;    // rounded up to a pair
  std::size_t block_count_ = 0;  // rounded up
  CountedArray<float> fp32_;
  CountedArray<Bfloat16> bf16_;
  CountedArray<std::int8_t> quants_;
  CountedArray<float> scales_;
  CountedArray<std::int32_t> sums_;
  CountedArray<float> scaled_sums_;
};

}  // namespace muster::engine
