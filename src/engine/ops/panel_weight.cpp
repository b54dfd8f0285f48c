// Memory and packing of a weight in panels of 16 outputs.

#include "engine/ops/panel_weight.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/check.h"
#include "engine/ops/int8_quants.h"

namespace muster::engine {
namespace {

std::size_t bytes_per_panel(WeightFormat format, std::size_t in_size) {
  const std::size_t blocks = in_size / block_inputs(format);
  switch (format) {
    case WeightFormat::Fp32:
      return in_size * kPanelOutputs * sizeof(float);
    case WeightFormat::Bf16:
      return (in_size + 1) / 2 * 2 * kPanelOutputs * sizeof(Bfloat16);
    case WeightFormat::Q4_0:
      return blocks * (kPanelOutputs * sizeof(Float16) + 4 * 64);
    case WeightFormat::Q4_1:
      return blocks * (2 * kPanelOutputs * sizeof(Float16) + 4 * 64);
    case WeightFormat::Q8_0:
      return blocks * (kPanelOutputs * sizeof(Float16) + 8 * 64);
    case WeightFormat::Int8:
      return Int8Panel::bytes(blocks);
  }
  return 0;
}

/// Copies the scale (and minimum) of a file's block to place `output` of a panel's block; where the
/// quants begin in the file's block.
const std::uint8_t* pack_scales(WeightFormat format, const std::byte* block, std::size_t output,
                                std::byte* to) {
  const std::size_t count = format == WeightFormat::Q4_1 ? 2 : 1;
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(to + (i * kPanelOutputs + output) * sizeof(Float16), block + i * sizeof(Float16),
                sizeof(Float16));
  }
  return reinterpret_cast<const std::uint8_t*>(block + count * sizeof(Float16));
}

// Byte j of a file's block of 4 bits holds input j in its low half and input 16 + j in its high
// half: as here, only that 4 inputs of each of 16 outputs come together.
void pack_block(WeightFormat format, const std::byte* block, std::size_t output, std::byte* to) {
  const auto* quants = pack_scales(format, block, output, to);
  const std::size_t head = (format == WeightFormat::Q4_1 ? 2 : 1) * kPanelOutputs * sizeof(Float16);
  const std::size_t part_count = format == WeightFormat::Q8_0 ? 8 : 4;
  for (std::size_t g = 0; g < part_count; ++g) {
    std::uint32_t four = 0;
    std::memcpy(&four, quants + 4 * g, sizeof four);
    if (format == WeightFormat::Q8_0) four ^= 0x80808080U;
    std::memcpy(to + head + g * 64 + output * sizeof four, &four, sizeof four);
  }
}

/// Blocks from `first` on of one output, all of them zero of one that is not there (nullptr).
void pack_int8(const float* row, std::size_t output, std::size_t first, std::size_t block_count,
               std::byte* panel) {
  std::int8_t quants[kScaledBlocks * kTransformedInputs] = {};
  const std::size_t count = block_count * kTransformedInputs;
  float scale = 0;
  if (row != nullptr) scale = int8_quants({row + first * kTransformedInputs, count}, quants);
  std::memcpy(panel + Int8Panel::scales(first) + output * sizeof scale, &scale, sizeof scale);
  std::byte* to = panel + Int8Panel::block(first) + output * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < count; i += sizeof(std::uint32_t), to += 64) {
    std::uint32_t four = 0;
    std::memcpy(&four, quants + i, sizeof four);
    four ^= 0x80808080U;
    std::memcpy(to, &four, sizeof four);
  }
}

}  // namespace

std::string_view weight_format_name(WeightFormat format) {
  switch (format) {
    case WeightFormat::Fp32:
      return "fp32";
    case WeightFormat::Bf16:
      return "bf16";
    case WeightFormat::Q4_0:
      return "Q4_0";
    case WeightFormat::Q4_1:
      return "Q4_1";
    case WeightFormat::Q8_0:
      return "Q8_0";
    case WeightFormat::Int8:
      return "int8";
  }
  return "?";
}

std::size_t file_block_bytes(WeightFormat format) {
  switch (format) {
    case WeightFormat::Q4_0:
      return 18;
    case WeightFormat::Q4_1:
      return 20;
    case WeightFormat::Q8_0:
      return 34;
    case WeightFormat::Fp32:
    case WeightFormat::Bf16:
    case WeightFormat::Int8:
      break;
  }
  return 0;
}

PanelWeight::PanelWeight(WeightFormat format, std::size_t out_size, std::size_t in_size,
                         bool is_interleaved)
    : format_(format),
      is_interleaved_(is_interleaved && !is_blocked(format)),
      out_size_(out_size),
      in_size_(in_size),
      panel_bytes_(bytes_per_panel(format, in_size)) {
  MUSTER_CHECK(in_size % block_inputs(format) == 0);
  data_ = CountedArray<std::byte>(panel_count() * panel_bytes_, ArrayPlace::Weights);
}

float* PanelWeight::make_bias() {
  const std::size_t count = panel_count() * kPanelOutputs;
  bias_ = CountedArray<float>(count);
  std::fill_n(bias_.get(), count, 0.0F);
  return bias_.get();
}

void pack_panel(const float* const (&rows)[kPanelOutputs], std::size_t index, PanelWeight& weight) {
  const std::size_t in_size = weight.in_size();
  if (weight.format() == WeightFormat::Int8) {
    const std::size_t block_count = in_size / kTransformedInputs;
    for (std::size_t b = 0; b < block_count; b += kScaledBlocks) {
      const std::size_t count = std::min(kScaledBlocks, block_count - b);
      for (std::size_t o = 0; o < kPanelOutputs; ++o) {
        pack_int8(rows[o], o, b, count, weight.panel(index));
      }
    }
    return;
  }
  const auto value = [&](std::size_t output, std::size_t input) {
    return rows[output] == nullptr || input >= in_size ? 0.0F : rows[output][input];
  };
  std::byte* step = weight.panel(index);
  const std::size_t stride = weight.step_stride(index);
  if (weight.format() == WeightFormat::Fp32) {
    for (std::size_t k = 0; k < in_size; ++k, step += stride) {
      auto* to = reinterpret_cast<float*>(step);
      for (std::size_t o = 0; o < kPanelOutputs; ++o) *to++ = value(o, k);
    }
    return;
  }
  for (std::size_t k = 0; k < in_size; k += 2, step += stride) {
    auto* to = reinterpret_cast<Bfloat16*>(step);
    for (std::size_t o = 0; o < kPanelOutputs; ++o) {
      *to++ = to_bfloat16(value(o, k));
      *to++ = to_bfloat16(value(o, k + 1));
    }
  }
}

void pack_panel(const std::byte* const (&rows)[kPanelOutputs], std::size_t index,
                PanelWeight& weight) {
  const auto format = weight.format();
  const std::size_t block_count = weight.in_size() / kBlockInputs;
  const std::size_t panel_block = block_count == 0 ? 0 : weight.panel_bytes() / block_count;
  const std::size_t file_block = file_block_bytes(format);
  std::byte* to = weight.panel(index);
  for (std::size_t b = 0; b < block_count; ++b, to += panel_block) {
    for (std::size_t o = 0; o < kPanelOutputs; ++o) {
      if (rows[o] != nullptr) pack_block(format, rows[o] + b * file_block, o, to);
    }
  }
  // A scale of zero makes whatever the quants are nothing.
  for (std::size_t o = 0; o < kPanelOutputs; ++o) {
    if (rows[o] != nullptr) continue;
    to = weight.panel(index);
    const std::size_t scales = format == WeightFormat::Q4_1 ? 2 : 1;
    for (std::size_t b = 0; b < block_count; ++b, to += panel_block) {
      for (std::size_t i = 0; i < scales; ++i) {
        std::memset(to + (i * kPanelOutputs + o) * sizeof(Float16), 0, sizeof(Float16));
      }
    }
  }
}

}  // namespace muster::engine
