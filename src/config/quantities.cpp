// Times, sizes and shares with their units. Numbers are parsed without the locale, and a whole
// number above 2^53 is refused, since it passes through a double that could not tell it from its
// neighbour.

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "base/text.h"
#include "config/values.h"

namespace muster {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// A number that is not negative, up to where it ends; nullopt when there is none.
std::optional<std::pair<double, std::string_view>> leading_number(std::string_view text) {
  double number = 0;
  if (text.empty()) return std::nullopt;
  const auto [end, code] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (code != std::errc{} || text.front() == '-' || !std::isfinite(number)) return std::nullopt;
  const auto used = static_cast<std::size_t>(end - text.data());
  return std::pair(number, trim(text.substr(used)));
}

// A whole number of what `units` count in; "0" needs no unit.
template <std::size_t Count>
std::optional<std::uint64_t> with_unit(std::string_view text, const std::array<Unit, Count>& units,
                                       bool is_unit_needed) {
  // Above this a double no longer tells two whole numbers apart.
  constexpr double kExactMost = 9007199254740992.0;
  const auto number = leading_number(text);
  if (!number) return std::nullopt;
  double factor = 0;
  if (number->second.empty()) {
    if (is_unit_needed && number->first != 0) return std::nullopt;
    factor = 1;
  }
  for (const auto& unit : units) {
    if (number->second == unit.name) factor = unit.factor;
  }
  const double value = std::round(number->first * factor);
  if (factor == 0 || value > kExactMost) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

}  // namespace

std::optional<std::uint64_t> parse_milliseconds(std::string_view text) {
  constexpr std::array<Unit, 4> kUnits{{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  return with_unit(text, kUnits, true);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr double kKibi = 1024;
  constexpr std::array<Unit, 9> kUnits{{{"B", 1},
                                        {"KiB", kKibi},
                                        {"MiB", kKibi * kKibi},
                                        {"GiB", kKibi * kKibi * kKibi},
                                        {"TiB", kKibi * kKibi * kKibi * kKibi},
                                        {"kB", 1e3},
                                        {"MB", 1e6},
                                        {"GB", 1e9},
                                        {"TB", 1e12}}};
  return with_unit(text, kUnits, false);
}

// A share of 0 would switch off what the setting is about, and is taken for a mistake.
std::optional<double> parse_fraction(std::string_view text) {
  const auto number = leading_number(text);
  if (!number || !(number->second.empty() || number->second == "%")) return std::nullopt;
  const double value = number->second.empty() ? number->first : number->first / 100;
  if (!(value > 0 && value <= 1)) return std::nullopt;
  return value;
}

}  // namespace muster
