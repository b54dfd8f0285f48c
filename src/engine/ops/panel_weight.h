#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/ops/bfloat16.h"
#include "engine/ops/counted_array.h"
#include "engine/ops/float16.h"

namespace muster::engine {

/// What the numbers of a packed weight are. The blocks are ggml's: 32 inputs of one output share a
/// scale d (and a minimum m): Q4_0 is d (q - 8), Q4_1 is d q + m, both with q of 0..15; Q8_0 is d q
/// with q of -128..127. Int8 is our own: d q of inputs that have been through the Hadamard
/// transform of hadamard.h, 64 by 64, as the rows have been that it is multiplied with; up to four
/// blocks of 64 share a scale. Source: ggml-common.h of llama.cpp 01243c58, block_q4_0, block_q4_1,
/// block_q8_0.
enum class WeightFormat : std::uint8_t { Fp32, Bf16, Q4_0, Q4_1, Q8_0, Int8 };

/// "fp32", "bf16", "Q4_0", "int8".
std::string_view weight_format_name(WeightFormat format);

inline constexpr std::size_t kBlockInputs = 32;
inline constexpr std::size_t kTransformedInputs = 64;  // of a block of Int8
inline constexpr std::size_t kScaledBlocks = 4;        // of Int8, or fewer, with one scale
inline constexpr std::size_t kPanelOutputs = 16;

/// Where the parts of a panel of Int8 stand, in bytes.
struct Int8Panel {
  static constexpr std::size_t kScaleBytes = kPanelOutputs * sizeof(float);
  static constexpr std::size_t kBlockBytes = kPanelOutputs * kTransformedInputs;

  // Always inline: a function of one name must not be compiled for several instruction sets.
  [[gnu::always_inline]] static constexpr std::size_t block(std::size_t index) {
    return (index / kScaledBlocks + 1) * kScaleBytes + index * kBlockBytes;
  }
  /// The scales of that block and the others that have them.
  [[gnu::always_inline]] static constexpr std::size_t scales(std::size_t index) {
    return index / kScaledBlocks * (kScaleBytes + kScaledBlocks * kBlockBytes);
  }
  [[gnu::always_inline]] static constexpr std::size_t bytes(std::size_t blocks) {
    return (blocks + kScaledBlocks - 1) / kScaledBlocks * kScaleBytes + blocks * kBlockBytes;
  }
};

/// Whether inputs share a scale.
constexpr bool is_blocked(WeightFormat format) { return format >= WeightFormat::Q4_0; }
/// What the inputs of a packed row are a multiple of.
constexpr std::size_t block_inputs(WeightFormat format) {
  if (format == WeightFormat::Int8) return kTransformedInputs;
  return is_blocked(format) ? kBlockInputs : 1;
}

/// A weight [out, in] in panels of 16 outputs, so that a product reads memory from front to back
/// and 16 sums grow side by side. A panel is, front to back,
///
///   fp32   for each input:          16 floats
///   bf16   for each pair of inputs: 16 x 2 values (a last odd input's partner is zero)
///   Q4_0   for each 32 inputs:      16 scales (float16); 4 x 64 bytes: in byte 4 o + i of part g,
///                                   output o's input 4 g + i (low half) and 16 + 4 g + i (high)
///   Q4_1   the same with 16 minima (float16) behind the scales
///   Q8_0   for each 32 inputs:      16 scales (float16); 8 x 64 bytes: in byte 4 o + i of part g,
///                                   q + 128 of output o's input 4 g + i
///   int8   for each 4 x 64 inputs:  16 scales (float32); 4 x 16 x 64 bytes, as those of Q8_0. The
///                                   last scales of a panel may be of fewer blocks
///
/// Panels of fp32 and bf16 may be interleaved: of four panels the first step of each (an input, or
/// a pair of them), then the second one of each. Four panels are one stream of memory so. Behind
/// the last four whole panels stand one behind the other.
///
/// Outputs that the last panel lacks are zero. A weight may stand in several matrices on top of
/// each other (query, key and value), each with a number of outputs that is a multiple of 16.
///
/// Owner: of its memory, which `memory_use` counts. Threads: `pack_panels` of different panels may
/// run at once; immutable afterwards.
class PanelWeight {
 public:
  static constexpr std::size_t kInterleaved = 4;  // panels

  PanelWeight() = default;
  /// is_interleaved: where the format has that.
  PanelWeight(WeightFormat format, std::size_t out_size, std::size_t in_size,
              bool is_interleaved = false);

  WeightFormat format() const { return format_; }
  std::size_t out_size() const { return out_size_; }
  std::size_t in_size() const { return in_size_; }
  std::size_t panel_count() const { return (out_size_ + kPanelOutputs - 1) / kPanelOutputs; }

  /// Bytes of one panel; a multiple of 32.
  std::size_t panel_bytes() const { return panel_bytes_; }
  /// Where its first step, or block, stands.
  const std::byte* panel(std::size_t index) const { return data_.get() + offset(index); }
  std::byte* panel(std::size_t index) { return data_.get() + offset(index); }

  bool is_interleaved() const { return is_interleaved_; }
  /// Bytes from a step of a panel to its next one, of fp32 and bf16.
  std::size_t step_stride(std::size_t index) const {
    return is_in_four(index) ? kInterleaved * kStepBytes : kStepBytes;
  }
  /// Bytes to the same step of the panel behind it, of the same four where it is one of four.
  std::size_t panel_distance(std::size_t index) const {
    return is_in_four(index) ? kStepBytes : panel_bytes_;
  }

  /// [panel_count() x 16] float32, or nullptr: added to every row of the product.
  const float* bias() const { return bias_.get(); }
  /// Zeros until they are set.
  float* make_bias();

  std::uint64_t bytes() const { return panel_count() * panel_bytes_; }

 private:
  static constexpr std::size_t kStepBytes = kPanelOutputs * sizeof(float);  // as of 2 bf16

  bool is_in_four(std::size_t index) const {
    return is_interleaved_ && (index | (kInterleaved - 1)) < panel_count();
  }
  std::size_t offset(std::size_t index) const {
    if (!is_in_four(index)) return index * panel_bytes_;
    const std::size_t place = index % kInterleaved;
    return (index - place) * panel_bytes_ + place * kStepBytes;
  }

  WeightFormat format_ = WeightFormat::Fp32;
  bool is_interleaved_ = false;
  std::size_t out_size_ = 0;
  std::size_t in_size_ = 0;
  std::size_t panel_bytes_ = 0;
  CountedArray<std::byte> data_;
  CountedArray<float> bias_;
};

/// Fills panel `index` from 16 rows [in] of float32, nullptr for an output that is not there. The
/// format is Fp32, Bf16 (rounded to nearest) or Int8 (quants of `int8_quants`).
void pack_panel(const float* const (&rows)[kPanelOutputs], std::size_t index, PanelWeight& weight);

/// The same from 16 rows of ggml's blocks in the weight's own format, as they stand in a file: no
/// bit is lost. The format is Q4_0, Q4_1 or Q8_0.
void pack_panel(const std::byte* const (&rows)[kPanelOutputs], std::size_t index,
                PanelWeight& weight);

/// Bytes of one of ggml's blocks: 18, 20 or 34; 0 for other formats.
std::size_t file_block_bytes(WeightFormat format);

}  // namespace muster::engine
