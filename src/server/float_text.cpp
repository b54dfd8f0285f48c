// Room for the longest form of all values is made once and cut to size afterwards, so the inner
// loops check no bounds. Base64 goes by 12 bits at a time: a table of 4096 pairs (8 KiB, which
// stays in the first-level cache) takes half the look-ups of one by 6 bits. The bytes of a row are
// sent as they lie in memory, hence the assertion that the machine is little-endian.

#include "server/float_text.h"

#include <array>
#include <bit>
#include <cstdint>

#include "server/base64.h"
#include "server/short_decimal.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "rows go out as they lie in memory");

constexpr std::size_t kFloatSizeMost = kShortestMost + 1;  // and a comma

}  // namespace

void append_floats(std::span<const float> values, std::string& out) {
  const std::size_t start = out.size();
  out.resize(start + values.size() * kFloatSizeMost);
  const char* end = put_shortest(values, out.data() + start);
  if (!values.empty()) --end;  // the last comma
  out.resize(static_cast<std::size_t>(end - out.data()));
}

void append_base64(std::span<const float> values, std::string& out) {
  const std::size_t start = out.size();
  out.resize(start + base64_size(values.size_bytes()));
  put_base64(std::as_bytes(values), out.data() + start);
}

bool are_finite(std::span<const float> values) {
  // The exponent of what is infinite or no number is all ones: one more carries into the sign.
  constexpr std::uint32_t kMagnitude = 0x7FFF'FFFF;
  constexpr std::uint32_t kOneOfExponent = 0x0080'0000;
  const auto sum = [](float value) {
    return (std::bit_cast<std::uint32_t>(value) & kMagnitude) + kOneOfExponent;
  };
  // No early end, and a constant number of values in each turn: g++ computes these in vectors at
  // -O2 too. So few that their sums stay in registers: 384 values take 32 ns, and by turns of 32
  // values 104.
  constexpr std::size_t kTurn = 8;
  std::array<std::uint32_t, kTurn> sums{};
  std::size_t at = 0;
  for (; at + kTurn <= values.size(); at += kTurn) {
    for (std::size_t i = 0; i < kTurn; ++i) sums[i] |= sum(values[at + i]);
  }
  for (; at < values.size(); ++at) sums[0] |= sum(values[at]);
  std::uint32_t all = 0;
  for (const auto one : sums) all |= one;
  return all <= kMagnitude;
}

}  // namespace muster
