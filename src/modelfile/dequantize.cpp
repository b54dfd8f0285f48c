// Reference dequantisation: simple rather than fast, and equal to ggml's own results to the last
// bit. All formats are read from bytes at fixed offsets and not through structs, so neither
// alignment nor padding of a type matters.

#include "modelfile/dequantize.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>

// A block of ggml's is a few scales and many small integers. Each function below reads one block;
// which one a type needs stands in a table, and the loop over blocks is the same for all.
//
// No product here is rounded: a half has 11 bits, a scale at most 8 and a quant at most 6, which
// together fit the 24 of a float. So the results do not depend on the order of the factors, nor on
// whether the compiler fuses a product with a sum.

namespace muster {
namespace {

constexpr std::size_t kSmall = 32;   // elements of a block of the older types
constexpr std::size_t kSuper = 256;  // of the K types

std::uint8_t byte_at(const std::byte* block, std::size_t at) {
  return std::to_integer<std::uint8_t>(block[at]);
}

std::uint16_t word_at(const std::byte* block, std::size_t at) {
  return static_cast<std::uint16_t>(byte_at(block, at) | byte_at(block, at + 1) << 8U);
}

float half_at(const std::byte* block, std::size_t at) { return half_to_float(word_at(block, at)); }

void read_f32(const std::byte* block, float* out) { std::memcpy(out, block, sizeof(float)); }
void read_f16(const std::byte* block, float* out) { *out = half_at(block, 0); }
void read_bf16(const std::byte* block, float* out) { *out = bfloat16_to_float(word_at(block, 0)); }

// Low halves of the bytes are the first 16 elements, high halves the others.
void read_q4_0(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (std::size_t i = 0; i < kSmall / 2; ++i) {
    const int quants = byte_at(block, 2 + i);
    out[i] = static_cast<float>((quants & 0xF) - 8) * scale;
    out[i + kSmall / 2] = static_cast<float>((quants >> 4) - 8) * scale;
  }
}

void read_q4_1(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  for (std::size_t i = 0; i < kSmall / 2; ++i) {
    const int quants = byte_at(block, 4 + i);
    out[i] = static_cast<float>(quants & 0xF) * scale + minimum;
    out[i + kSmall / 2] = static_cast<float>(quants >> 4) * scale + minimum;
  }
}

// The fifth bits of all elements are 32 bits by themselves, element 0 the lowest.
template <typename Value>
void read_five_bits(const std::byte* block, std::size_t high_at, const Value& value, float* out) {
  std::uint32_t high = 0;
  std::memcpy(&high, block + high_at, sizeof(high));
  for (std::size_t i = 0; i < kSmall / 2; ++i) {
    const unsigned quants = byte_at(block, high_at + sizeof(high) + i);
    out[i] = value((quants & 0xFU) | ((high >> i) & 1U) << 4U);
    out[i + kSmall / 2] = value(quants >> 4U | ((high >> (i + kSmall / 2)) & 1U) << 4U);
  }
}

void read_q5_0(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const auto value = [&](unsigned quant) {
    return static_cast<float>(static_cast<int>(quant) - 16) * scale;
  };
  read_five_bits(block, 2, value, out);
}

void read_q5_1(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  const auto value = [&](unsigned quant) { return static_cast<float>(quant) * scale + minimum; };
  read_five_bits(block, 4, value, out);
}

void read_q8_0(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (std::size_t i = 0; i < kSmall; ++i) {
    out[i] = static_cast<float>(static_cast<std::int8_t>(byte_at(block, 2 + i))) * scale;
  }
}

struct ScaleAndMinimum {
  float scale;
  float minimum;
};

/// Of group `group` of 8: six bits each, packed into the twelve bytes behind the two halves that
/// scale the scales and the minimums. Source: ggml-quants.c, get_scale_min_k4.
ScaleAndMinimum group_of(const std::byte* block, std::size_t group) {
  const auto packed = [&](std::size_t i) { return unsigned{byte_at(block, 4 + i)}; };
  unsigned scale = 0;
  unsigned minimum = 0;
  if (group < 4) {
    scale = packed(group) & 63U;
    minimum = packed(group + 4) & 63U;
  } else {
    scale = (packed(group + 4) & 0xFU) | (packed(group - 4) >> 6U) << 4U;
    minimum = packed(group + 4) >> 4U | (packed(group) >> 6U) << 4U;
  }
  return {half_at(block, 0) * static_cast<float>(scale),
          half_at(block, 2) * static_cast<float>(minimum)};
}

constexpr std::size_t kGroup = 32;       // elements that share a scale in Q4_K and Q5_K
constexpr std::size_t kKScalesEnd = 16;  // two halves and twelve bytes

// 32 bytes hold two groups: the first in their low halves, the second in their high ones.
void read_q4_k(const std::byte* block, float* out) {
  for (std::size_t group = 0; group < kSuper / kGroup; ++group) {
    const auto [scale, minimum] = group_of(block, group);
    const std::size_t quants = kKScalesEnd + group / 2 * kGroup;
    const unsigned shift = group % 2 * 4;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const unsigned quant = byte_at(block, quants + i) >> shift & 0xFU;
      out[group * kGroup + i] = static_cast<float>(quant) * scale - minimum;
    }
  }
}

// As Q4_K, with the fifth bit of element i of group g as bit g of byte i of 32 more.
void read_q5_k(const std::byte* block, float* out) {
  constexpr std::size_t kHigh = kKScalesEnd;
  constexpr std::size_t kLow = kHigh + kGroup;
  for (std::size_t group = 0; group < kSuper / kGroup; ++group) {
    const auto [scale, minimum] = group_of(block, group);
    const std::size_t quants = kLow + group / 2 * kGroup;
    const unsigned shift = group % 2 * 4;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const unsigned low = byte_at(block, quants + i) >> shift & 0xFU;
      const unsigned high = byte_at(block, kHigh + i) >> group & 1U;
      out[group * kGroup + i] = static_cast<float>(low | high << 4U) * scale - minimum;
    }
  }
}

// Two halves of 128 elements; in each, quarter q takes its low bits from 32 of 64 bytes (the second
// half of them for odd q), low or high nibbles, and its two high bits from bits 2 q of 32 bytes.
void read_q6_k(const std::byte* block, float* out) {
  constexpr std::size_t kHigh = 128;
  constexpr std::size_t kScales = kHigh + 64;
  constexpr std::size_t kScale = kScales + 16;
  const float scale = half_at(block, kScale);
  for (std::size_t part = 0; part < kSuper / kGroup; ++part) {
    const std::size_t half = part / 4;
    const std::size_t quarter = part % 4;
    const std::size_t low = half * 64 + quarter % 2 * 32;
    for (std::size_t i = 0; i < kGroup; ++i) {
      const unsigned low_bits = byte_at(block, low + i) >> (quarter / 2 * 4) & 0xFU;
      const unsigned high_bits = byte_at(block, kHigh + half * 32 + i) >> (quarter * 2) & 3U;
      const int quant = static_cast<int>(low_bits | high_bits << 4U) - 32;
      const auto group = static_cast<std::int8_t>(byte_at(block, kScales + part * 2 + i / 16));
      out[part * kGroup + i] = scale * static_cast<float>(group) * static_cast<float>(quant);
    }
  }
}

using BlockReader = void (*)(const std::byte*, float*);

BlockReader reader_of(std::uint32_t type) {
  switch (static_cast<GgmlTypeId>(type)) {
    case GgmlTypeId::F32:
      return read_f32;
    case GgmlTypeId::F16:
      return read_f16;
    case GgmlTypeId::BF16:
      return read_bf16;
    case GgmlTypeId::Q4_0:
      return read_q4_0;
    case GgmlTypeId::Q4_1:
      return read_q4_1;
    case GgmlTypeId::Q5_0:
      return read_q5_0;
    case GgmlTypeId::Q5_1:
      return read_q5_1;
    case GgmlTypeId::Q8_0:
      return read_q8_0;
    case GgmlTypeId::Q4_K:
      return read_q4_k;
    case GgmlTypeId::Q5_K:
      return read_q5_k;
    case GgmlTypeId::Q6_K:
      return read_q6_k;
  }
  return nullptr;
}

}  // namespace

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {
    // Zero and the subnormals: fraction x 2^-24, which a float holds exactly.
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  // The exponents' biases are 15 and 127; infinities and NaN have the highest exponent in both.
  const std::uint32_t wide = exponent == 0x1F ? 0xFFU : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23U | fraction << 13U);
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

bool can_dequantize(const GgmlType& type) { return reader_of(type.id) != nullptr; }

Status dequantize(const GgmlType& type, std::span<const std::byte> bytes, std::span<float> out) {
  const auto read = reader_of(type.id);
  if (read == nullptr) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("weights of this type are not read; F32, F16, BF16, Q8_0, Q4_0, Q4_1, "
                             "Q5_0, Q5_1, Q4_K, Q5_K and Q6_K are: {}",
                             type.name)};
  }
  const auto blocks = bytes.size() / type.block_bytes;
  if (bytes.size() % type.block_bytes != 0 || out.size() != blocks * type.block_elements) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} bytes of {} are not {} elements",
                                                         bytes.size(), type.name, out.size())};
  }
  for (std::size_t i = 0; i < blocks; ++i) {
    read(bytes.data() + i * type.block_bytes, out.data() + i * type.block_elements);
  }
  return Done{};
}

}  // namespace muster
