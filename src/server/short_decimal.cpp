#include "server/short_decimal.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace muster {
namespace {

static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

constexpr int kDigitCount = 9;  // enough for any float32 to read back as itself
constexpr std::uint32_t kMantissaBits = 23;
constexpr std::uint32_t kMantissa = (1U << kMantissaBits) - 1;
constexpr std::uint32_t kExponent = 0xFFU << kMantissaBits;

using DigitPair = std::array<char, 2>;

constexpr std::array<DigitPair, 100> make_digit_pairs() {
  std::array<DigitPair, 100> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i] = {static_cast<char>('0' + i / 10), static_cast<char>('0' + i % 10)};
  }
  return pairs;
}
constexpr auto kDigitPairs = make_digit_pairs();

void put_pair(char* out, std::uint32_t number) { std::memcpy(out, kDigitPairs[number].data(), 2); }

char* put_by_ryu(float value, char* out) {
  return std::to_chars(out, out + kShortestMost, value).ptr;
}

/// A value as nine digits and a rest, and the whole numbers of nine digits that would read back as
/// it: `least` to `most`.
struct Scaled {
  double exact;
  std::uint32_t least;
  std::uint32_t most;
};

Scaled scale(std::uint32_t bits, double magnitude, double power) {
  constexpr std::uint32_t kHalfGap = (kMantissaBits + 1) << kMantissaBits;
  const double half_gap = std::bit_cast<float>((bits & kExponent) - kHalfGap);
  const double low = (magnitude - half_gap) * power;
  const double high = (magnitude + half_gap) * power;
  const auto floor_low = static_cast<std::uint32_t>(low);
  const auto floor_high = static_cast<std::uint32_t>(high);
  // A number half way to a neighbour reads back as the one of both whose mantissa is even.
  const bool is_odd = (bits & 1) != 0;
  const bool is_low_outside = is_odd || floor_low < low;
  const bool is_high_outside = is_odd && floor_high >= high;
  return {magnitude * power, floor_low + static_cast<std::uint32_t>(is_low_outside),
          floor_high - static_cast<std::uint32_t>(is_high_outside)};
}

/// The largest power of ten that has a multiple among them, and how many digits are left of nine.
struct Step {
  std::uint32_t size;
  int digit_count;
};

Step find_step(const Scaled& scaled) {
  const auto has_multiple = [&](std::uint32_t of) { return scaled.most / of * of >= scaled.least; };
  const bool has_ten = has_multiple(10);
  const bool has_hundred = has_multiple(100);
  Step step{.size = 1, .digit_count = kDigitCount - int{has_ten} - int{has_hundred}};
  if (has_ten) step.size = 10;
  if (has_hundred) step.size = 100;
  if (!has_hundred) return step;
  while (step.digit_count > 1 && has_multiple(step.size * 10)) {
    step.size *= 10;
    --step.digit_count;
  }
  return step;
}

/// The multiple of the step that is nearest to the value; 0 where two are.
std::uint32_t find_nearest(const Scaled& scaled, std::uint32_t step) {
  const auto whole = static_cast<std::uint32_t>(scaled.exact);
  const double rest = scaled.exact - whole;
  if (step == 1) return rest == 0.5 ? 0 : whole + static_cast<std::uint32_t>(rest > 0.5);
  const auto nearest = (whole + step / 2) / step * step;
  return nearest == whole + step / 2 && rest == 0 ? 0 : nearest;
}

void put_digits(std::uint32_t number, char* out) {
  const auto first = number / 100'000'000;
  const auto high = number / 10'000 % 10'000;
  const auto low = number % 10'000;
  *out = static_cast<char>('0' + first);
  put_pair(out + 1, high / 100);
  put_pair(out + 3, high % 100);
  put_pair(out + 5, low / 100);
  put_pair(out + 7, low % 100);
}

}  // namespace

char* put_shortest(float value, char* out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float magnitude = std::fabs(value);
  // Below a power of two the gap to the neighbour is half of that above.
  const bool is_even_spaced = (bits & kMantissa) != 0;
  if (magnitude < 0.0001F || magnitude >= 1 || !is_even_spaced) return put_by_ryu(value, out);
  constexpr std::array kPowers{1e9, 1e10, 1e11, 1e12};
  const int zero_count = int{magnitude < 0.1F} + int{magnitude < 0.01F} + int{magnitude < 0.001F};
  const auto scaled = scale(bits, magnitude, kPowers[static_cast<std::size_t>(zero_count)]);
  const auto step = find_step(scaled);
  const auto nearest = find_nearest(scaled, step.size);
  const bool has_exponent = zero_count == 3 && step.digit_count == 1;  // 3e-04
  if (nearest == 0 || has_exponent) return put_by_ryu(value, out);
  *out = '-';
  out += bits >> 31;
  constexpr std::string_view kFront = "0.000";
  std::memcpy(out, kFront.data(), kFront.size());
  out += 2 + zero_count;
  put_digits(nearest, out);
  return out + step.digit_count;
}

}  // namespace muster
