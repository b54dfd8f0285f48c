// The short way goes in steps over blocks of sixteen, each step a loop over plain arrays: take
// apart, scale, choose, write. A value that it cannot take is replaced by a harmless one for the
// arithmetic and written by std::to_chars afterwards, so no step needs a branch. Why the products
// are exact is in the header.

#include "server/short_decimal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace muster {
namespace {

static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);
static_assert(std::endian::native == std::endian::little);

constexpr int kDigitCount = 9;  // enough for any float32 to read back as itself
constexpr int kMantissaBits = 23;
constexpr std::int32_t kMantissa = (1 << kMantissaBits) - 1;
constexpr std::int32_t kExponent = 0xFF << kMantissaBits;

// Each step below is a loop without branches over sixteen values, from which the compiler makes
// vector instructions. Truth is a mask: -1 or 0.
constexpr std::size_t kBlock = 16;
using Ints = std::array<std::int32_t, kBlock>;
using Floats = std::array<float, kBlock>;
using Doubles = std::array<double, kBlock>;

/// The values of a block that go the short way, without their signs; others are 0.50000006 here.
struct Magnitudes {
  Floats values;
  Floats half_gaps;  // half the distance to a neighbour
  Floats powers;     // of ten: times 10^9 a value has nine digits before the point
  Ints zero_counts;  // between the point and the first digit
  Ints are_odd;      // 1: its mantissa is
  Ints are_others;   // mask: goes Ryu's way
};

/// The values as nine digits and a rest, and the whole numbers of nine digits that would read back
/// as them: `least` to `most`.
struct Scaled {
  Ints whole;
  Ints least;
  Ints most;
  Ints are_whole;       // mask: the rest is 0
  Ints are_half_way;    // mask: the rest is 1/2
  Ints are_above_half;  // mask
};

struct Decimals {
  Ints numbers;       // nine digits with zeros at the end
  Ints digit_counts;  // what is left without them
};

/// The characters of the numbers, as bytes.
struct Digits {
  Ints first;
  Ints four_high;
  Ints four_low;
};

[[gnu::always_inline]] inline Magnitudes take_apart(const Floats& values) {
  constexpr auto kHalf = std::bit_cast<std::int32_t>(0.5F);
  constexpr std::int32_t kHalfGap = (kMantissaBits + 1) << kMantissaBits;
  Magnitudes m;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(values[i]) & std::numeric_limits<int>::max();
    const auto magnitude = std::bit_cast<float>(bits);
    // Below a power of two the gap to the neighbour is half of that above.
    const std::int32_t is_uneven = (bits & kMantissa) == 0 ? -1 : 0;
    const std::int32_t is_outside = (magnitude < 0.0001F ? -1 : 0) | (magnitude >= 1 ? -1 : 0);
    m.are_others[i] = is_uneven | is_outside;
    const auto kept = (bits & ~m.are_others[i]) | ((kHalf + 1) & m.are_others[i]);
    const auto value = std::bit_cast<float>(kept);
    m.values[i] = value;
    m.half_gaps[i] = std::bit_cast<float>((kept & kExponent) - kHalfGap);
    m.are_odd[i] = kept & 1;
    const std::int32_t below_1 = value < 0.1F ? 1 : 0;
    const std::int32_t below_2 = value < 0.01F ? 1 : 0;
    const std::int32_t below_3 = value < 0.001F ? 1 : 0;
    m.zero_counts[i] = below_1 + below_2 + below_3;
    m.powers[i] = static_cast<float>(1 + 9 * below_1 + 90 * below_2 + 900 * below_3);
  }
  return m;
}

[[gnu::always_inline]] inline Scaled scale(const Magnitudes& m) {
  Doubles exact;
  Doubles low;
  Doubles high;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double power = static_cast<double>(m.powers[i]) * 1e9;
    const double value = m.values[i];
    const double half_gap = m.half_gaps[i];
    exact[i] = value * power;
    low[i] = (value - half_gap) * power;
    high[i] = (value + half_gap) * power;
  }
  Scaled s;
  for (std::size_t i = 0; i < kBlock; ++i) s.whole[i] = static_cast<std::int32_t>(exact[i]);
  for (std::size_t i = 0; i < kBlock; ++i) s.least[i] = static_cast<std::int32_t>(low[i]);
  for (std::size_t i = 0; i < kBlock; ++i) s.most[i] = static_cast<std::int32_t>(high[i]);
  // Whether a rest is 0, and on which side of 1/2 it lies, is the same when rounded to float.
  Floats rest;
  Floats rest_above_half;
  Floats low_rest;
  Floats high_rest;
  for (std::size_t i = 0; i < kBlock; ++i) {
    rest[i] = static_cast<float>(exact[i] - s.whole[i]);
    rest_above_half[i] = static_cast<float>(exact[i] - s.whole[i] - 0.5);
    low_rest[i] = static_cast<float>(low[i] - s.least[i]);
    high_rest[i] = static_cast<float>(high[i] - s.most[i]);
  }
  for (std::size_t i = 0; i < kBlock; ++i) {
    s.are_whole[i] = rest[i] == 0 ? -1 : 0;
    s.are_half_way[i] = rest_above_half[i] == 0 ? -1 : 0;
    s.are_above_half[i] = rest_above_half[i] > 0 ? -1 : 0;
    // A number half way to a neighbour reads back as the one of both whose mantissa is even.
    s.least[i] += m.are_odd[i] | (low_rest[i] > 0 ? 1 : 0);
    s.most[i] -= m.are_odd[i] & (high_rest[i] == 0 ? 1 : 0);
  }
  return s;
}

constexpr std::int32_t cut_to(std::int32_t number, std::uint32_t step) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(number) / step * step);
}

/// The multiple of the largest power of ten that has one between `least` and `most`, of those the
/// nearest to the value. Five digits and fewer are left to Ryu, and a value half way between two.
[[gnu::always_inline]] inline Decimals choose(const Scaled& s, Ints& are_others) {
  Decimals decimals;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::int32_t has_ten = cut_to(s.most[i], 10) >= s.least[i] ? -1 : 0;
    const std::int32_t has_hundred = cut_to(s.most[i], 100) >= s.least[i] ? -1 : 0;
    const std::int32_t has_thousand = cut_to(s.most[i], 1'000) >= s.least[i] ? -1 : 0;
    const std::int32_t has_more = cut_to(s.most[i], 10'000) >= s.least[i] ? -1 : 0;
    const std::int32_t by_one = s.whole[i] - s.are_above_half[i];
    const std::int32_t by_ten = cut_to(s.whole[i] + 5, 10);
    const std::int32_t by_hundred = cut_to(s.whole[i] + 50, 100);
    const std::int32_t by_thousand = cut_to(s.whole[i] + 500, 1'000);
    const std::int32_t number = (by_one & ~has_ten) | (by_ten & has_ten & ~has_hundred) |
                                (by_hundred & has_hundred & ~has_thousand) |
                                (by_thousand & has_thousand);
    const std::int32_t half_step = (5 & has_ten) + (45 & has_hundred) + (450 & has_thousand);
    const std::int32_t is_at_half = number == s.whole[i] + half_step ? -1 : 0;
    const std::int32_t is_tie =
        (s.are_half_way[i] & ~has_ten) | (s.are_whole[i] & has_ten & is_at_half);
    are_others[i] |= has_more | is_tie;
    decimals.numbers[i] = number;
    decimals.digit_counts[i] = kDigitCount + has_ten + has_hundred + has_thousand;
  }
  return decimals;
}

/// Four digits as the bytes of a word, the first in the lowest: halved into two numbers of two and
/// four of one, each division a product and a shift that are exact in their range.
constexpr std::int32_t spell_four(std::uint32_t number) {
  const std::uint32_t hundreds = number * 10'486 >> 20;
  const std::uint32_t twos = hundreds | (number - hundreds * 100) << 16;
  const std::uint32_t tens = (twos * 103 >> 10) & 0x000F'000F;
  return static_cast<std::int32_t>((tens | (twos - tens * 10) << 8) + 0x3030'3030);
}

// First one digit, then two groups of four: each group is what spell_four takes, and no step needs
// more than 32 bits.
[[gnu::always_inline]] inline Digits spell(const Ints& numbers) {
  Digits digits;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto number = static_cast<std::uint32_t>(numbers[i]);
    const std::uint32_t first = number / 100'000'000;
    const std::uint32_t eight = number - first * 100'000'000;
    const std::uint32_t high = eight / 10'000;
    digits.first[i] = static_cast<std::int32_t>('0' + first);
    digits.four_high[i] = spell_four(high);
    digits.four_low[i] = spell_four(eight - high * 10'000);
  }
  return digits;
}

char* put_by_ryu(float value, char* out) {
  return std::to_chars(out, out + kShortestMost, value).ptr;
}

char* put_comma(char* out) {
  *out = ',';
  return out + 1;
}

// Always writes all nine digits and all leading zeros, and then moves the end back: the copies have
// constant sizes, and the next value overwrites what is too much. The sign is written in any case
// and kept by its bit.
[[gnu::always_inline]] inline char* put_block(const Floats& values, std::size_t count, char* out) {
  constexpr std::string_view kFront = "0.000";
  auto magnitudes = take_apart(values);
  const auto decimals = choose(scale(magnitudes), magnitudes.are_others);
  const auto digits = spell(decimals.numbers);
  for (std::size_t i = 0; i < count; ++i, out = put_comma(out)) {
    if (magnitudes.are_others[i] != 0) {
      out = put_by_ryu(values[i], out);
      continue;
    }
    *out = '-';
    out += std::bit_cast<std::uint32_t>(values[i]) >> 31;
    std::memcpy(out, kFront.data(), kFront.size());
    out += 2 + magnitudes.zero_counts[i];
    *out = static_cast<char>(digits.first[i]);
    std::memcpy(out + 1, &digits.four_high[i], 4);
    std::memcpy(out + 5, &digits.four_low[i], 4);
    out += decimals.digit_counts[i];
  }
  return out;
}

[[gnu::always_inline]] inline char* put_all(std::span<const float> values, char* out) {
  while (!values.empty()) {
    Floats block{};
    const std::size_t count = std::min(kBlock, values.size());
    if (count == kBlock) {
      std::memcpy(block.data(), values.data(), sizeof block);
    } else {
      std::copy(values.begin(), values.end(), block.begin());
    }
    out = put_block(block, count, out);
    values = values.subspan(count);
  }
  return out;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] char* put_avx2(std::span<const float> values, char* out) {
  return put_all(values, out);
}
#endif

char* put_plain(std::span<const float> values, char* out) { return put_all(values, out); }

}  // namespace

std::vector<PutShortest> put_shortest_available() {
  std::vector<PutShortest> available{put_plain};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) available.push_back(put_avx2);
#endif
  return available;
}

char* put_shortest(std::span<const float> values, char* out) {
  static const PutShortest quickest = put_shortest_available().back();
  return quickest(values, out);
}

}  // namespace muster
