// The angles of rotary positions, and what stretches them beyond the trained length. Each law is
// written in the order and precision of transformers, since models were trained with what that code
// computes. All but the dynamic and the long law give the same frequencies for every length.
// Source: transformers 5.17, modeling_rope_utils.py.

#include "spec/rope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

// Powers are computed in double and rounded once. torch takes them in float32 with an error of up
// to one unit in the last place, so frequencies may differ by that unit, which no order of ours
// could avoid; everything behind the powers is in torch's order and precision.

namespace muster {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// base^(2 i / size), i = 0, 1, ...
std::vector<float> powers_of(double base, std::uint32_t size) {
  std::vector<float> powers(size / 2);
  for (std::size_t i = 0; i < powers.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(size);
    powers[i] = static_cast<float>(std::pow(base, static_cast<double>(exponent)));
  }
  return powers;
}

std::vector<float> plain(double base, std::uint32_t size) {
  auto values = powers_of(base, size);
  for (auto& value : values) value = 1.0F / value;
  return values;
}

std::vector<float> linear(const RopeSpec& rope) {
  auto values = plain(rope.base, rope.size);
  for (auto& value : values) value /= static_cast<float>(rope.factor);
  return values;
}

/// The base that spreads the lowest frequency over the whole of a longer sequence.
std::vector<float> dynamic(const RopeSpec& rope, std::uint64_t length) {
  const auto trained = static_cast<double>(rope.original_length);
  const double reached = std::max(static_cast<double>(length), trained);
  const double growth = rope.factor * reached / trained - (rope.factor - 1);
  const double size = rope.size;
  return plain(rope.base * std::pow(growth, size / (size - 2)), rope.size);
}

/// Frequencies that turn more than `beta_fast` times over the trained length stay, those that turn
/// less than `beta_slow` times are divided by the factor, and a ramp leads from one to the other.
std::vector<float> yarn(const RopeSpec& rope) {
  const auto size = static_cast<double>(rope.size);
  const auto dimension_of = [&](double turns) {
    return size * std::log(rope.original_length / (turns * 2 * kPi)) / (2 * std::log(rope.base));
  };
  double low = dimension_of(rope.beta_fast);
  double high = dimension_of(rope.beta_slow);
  if (rope.is_truncated) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;  // as in the source, against a division by zero
  auto values = powers_of(rope.base, rope.size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float place =
        (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1.0F - std::clamp(place, 0.0F, 1.0F);
    const float stretched = 1.0F / (static_cast<float>(rope.factor) * values[i]);
    values[i] = stretched * (1.0F - kept) + 1.0F / values[i] * kept;
  }
  return values;
}

/// Long waves are stretched by the factor, short ones stay, and those between are mixed.
std::vector<float> llama3(const RopeSpec& rope) {
  const auto trained = static_cast<double>(rope.original_length);
  const auto factor = static_cast<float>(rope.factor);
  const auto longest = static_cast<float>(trained / rope.low_frequency_factor);
  const auto shortest = static_cast<float>(trained / rope.high_frequency_factor);
  auto values = plain(rope.base, rope.size);
  for (auto& value : values) {
    const float wave = static_cast<float>(2 * kPi) / value;
    if (wave < shortest) continue;
    if (wave > longest) {
      value /= factor;
      continue;
    }
    const float mix =
        (static_cast<float>(trained) / wave - static_cast<float>(rope.low_frequency_factor)) /
        static_cast<float>(rope.high_frequency_factor - rope.low_frequency_factor);
    value = (1.0F - mix) * value / factor + mix * value;
  }
  return values;
}

// Each frequency has a divisor of its own, found by a search when the model was trained for longer
// texts.
std::vector<float> divided(const RopeSpec& rope, const std::vector<float>& divisors) {
  auto values = powers_of(rope.base, rope.size);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / (divisors[i] * values[i]);
  return values;
}

std::vector<float> frequencies(const RopeSpec& rope, std::uint64_t length) {
  switch (rope.scaling) {
    case RopeScaling::None:
      break;
    case RopeScaling::Linear:
      return linear(rope);
    case RopeScaling::Dynamic:
      return dynamic(rope, length);
    case RopeScaling::Yarn:
      return yarn(rope);
    case RopeScaling::Llama3:
      return llama3(rope);
    case RopeScaling::LongRope:
      return divided(rope,
                     length > rope.original_length ? rope.long_divisors : rope.short_divisors);
  }
  return plain(rope.base, rope.size);
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeSpec& rope, std::uint64_t length) {
  return {frequencies(rope, length), static_cast<float>(rope.attention_factor)};
}

}  // namespace muster
