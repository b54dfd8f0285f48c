// Room for the longest form of all values is made once and cut to size afterwards, so the inner
// loops check no bounds. Base64 goes by 12 bits at a time: a table of 4096 pairs (8 KiB, which
// stays in the first-level cache) takes half the look-ups of one by 6 bits. The bytes of a row are
// sent as they lie in memory, hence the assertion that the machine is little-endian.

#include "server/float_text.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "server/short_decimal.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "rows go out as they lie in memory");

constexpr std::size_t kFloatSizeMost = kShortestMost + 1;  // and a comma

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

using CharPair = std::array<char, 2>;

// Both characters of twelve bits.
constexpr std::array<CharPair, 4096> make_pairs() {
  std::array<CharPair, 4096> pairs{};
  for (std::size_t bits = 0; bits < pairs.size(); ++bits) {
    pairs[bits] = {kAlphabet[bits >> 6], kAlphabet[bits & 63]};
  }
  return pairs;
}
constexpr auto kPairs = make_pairs();

char* put_pair(char* out, std::uint32_t bits) {
  std::memcpy(out, kPairs[bits].data(), 2);
  return out + 2;
}

}  // namespace

void append_floats(std::span<const float> values, std::string& out) {
  const std::size_t start = out.size();
  out.resize(start + values.size() * kFloatSizeMost);
  const char* end = put_shortest(values, out.data() + start);
  if (!values.empty()) --end;  // the last comma
  out.resize(static_cast<std::size_t>(end - out.data()));
}

void append_base64(std::span<const float> values, std::string& out) {
  const auto bytes = std::as_bytes(values);
  const auto* in = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t left = bytes.size();
  const std::size_t start = out.size();
  out.resize(start + base64_size(left));
  char* at = out.data() + start;
  for (; left >= 3; left -= 3, in += 3) {
    const std::uint32_t bits =
        static_cast<std::uint32_t>(in[0]) << 16 | static_cast<std::uint32_t>(in[1]) << 8 | in[2];
    at = put_pair(at, bits >> 12);
    at = put_pair(at, bits & 0xFFF);
  }
  if (left == 0) return;
  const std::uint32_t bits = static_cast<std::uint32_t>(in[0]) << 16 |
                             (left == 2 ? static_cast<std::uint32_t>(in[1]) << 8 : 0);
  at = put_pair(at, bits >> 12);
  *at++ = left == 2 ? kAlphabet[bits >> 6 & 63] : '=';
  *at = '=';
}

bool are_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F80'0000;  // all ones: infinite, or no number
  std::uint32_t is_any_not = 0;                     // no early end, so that it is done in vectors
  for (const float value : values) {
    const bool is_not = (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent;
    is_any_not |= is_not ? 1U : 0U;
  }
  return is_any_not == 0;
}

}  // namespace muster
