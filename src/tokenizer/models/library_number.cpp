// Scores must equal the library's to the last bit, and the library's parser rounds twice: first
// the digits as a whole number, then the product with a power of ten. So std::from_chars cannot
// be used for the number itself; it only fills the table of powers, which are exact to the
// nearest. Digits that no longer fit into 64 bits count as zeros before the point and vanish
// behind it.

#include "tokenizer/models/library_number.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

namespace muster {
namespace {

constexpr int kPowerMax = 308;
constexpr std::int64_t kExponentMax = 1'000'000;  // far beyond any double

/// 10^exponent, rounded to the nearest.
double power_of_ten(std::int64_t exponent) {
  static const auto powers = [] {
    std::array<double, kPowerMax + 1> all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string text = "1e" + std::to_string(i);
      std::from_chars(text.data(), text.data() + text.size(), all[i]);
    }
    return all;
  }();
  return powers[static_cast<std::size_t>(exponent)];
}

double scaled(std::uint64_t significand, std::int64_t exponent) {
  auto value = static_cast<double>(significand);
  while (exponent < -kPowerMax && value != 0) {
    value /= power_of_ten(kPowerMax);
    exponent += kPowerMax;
  }
  if (value == 0) {
    return 0;
  }
  if (exponent > kPowerMax) {
    return std::numeric_limits<double>::infinity();
  }
  return exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  double read() {
    const bool is_negative = skip('-');
    read_whole();
    if (skip('.')) {
      read_fraction();
    }
    if (skip('e') || skip('E')) {
      read_exponent();
    }
    const double value = scaled(significand_, exponent_);
    return is_negative ? -value : value;
  }

 private:
  bool at_digit() const { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; }

  bool skip(char c) {
    const bool is_there = at_ < text_.size() && text_[at_] == c;
    at_ += is_there ? 1 : 0;
    return is_there;
  }

  /// Takes the digit at hand into the significand; false if it has no room for it.
  bool take_digit() {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    if (significand_ > (kMax - digit) / 10) {
      return false;
    }
    significand_ = significand_ * 10 + digit;
    ++at_;
    return true;
  }

  void read_whole() {
    while (at_digit() && take_digit()) {
    }
    for (; at_digit(); ++at_) {
      ++exponent_;
    }
  }

  void read_fraction() {
    while (at_digit() && take_digit()) {
      --exponent_;
    }
    while (at_digit()) {
      ++at_;  // no room: the library leaves out what is left
    }
  }

  void read_exponent() {
    const bool is_negative = skip('-');
    skip('+');
    std::int64_t exponent = 0;
    for (; at_digit(); ++at_) {
      if (exponent < kExponentMax) {
        exponent = exponent * 10 + (text_[at_] - '0');
      }
    }
    exponent_ += is_negative ? -exponent : exponent;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t significand_ = 0;
  std::int64_t exponent_ = 0;
};

}  // namespace

double library_number(std::string_view number) { return Reader(number).read(); }

}  // namespace muster
