// Numbers behind flags. What is no number in the one form may be one as people write it: with a
// decimal comma, a "+", "_" between digits, an exponent. It is not taken, but it is what was meant.

#include "cli/flag_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace muster {
namespace {

template <typename Number>
std::optional<Number> read_whole_text(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Not finite where nothing is near. takes_groups: "1,000" is a thousand.
double meant_by(std::string_view text, bool takes_groups) {
  constexpr std::size_t kGroup = 3;
  std::string plain(trim(text));
  if (plain.starts_with('+')) plain.erase(0, 1);
  std::erase(plain, '_');
  const auto comma = plain.rfind(',');
  if (takes_groups && comma != std::string::npos && plain.size() - comma - 1 == kGroup) {
    std::erase(plain, ',');
  }
  if (std::count(plain.begin(), plain.end(), ',') == 1) {
    std::replace(plain.begin(), plain.end(), ',', '.');
  }
  return read_whole_text<double>(plain).value_or(std::nan(""));
}

}  // namespace

Result<std::uint64_t> whole_number_of(std::string_view flag, const std::string& text,
                                      const WholeRange& range) {
  const auto value = read_whole_text<std::uint64_t>(text);
  if (value && *value >= range.least && *value <= range.most) return *value;
  constexpr double kExactMost = 9007199254740992.0;  // 2^53: beyond it a double is another number
  const double meant = meant_by(text, /*takes_groups=*/true);
  const bool is_near = meant == std::floor(meant) && meant >= 0 && meant <= kExactMost &&
                       meant >= static_cast<double>(range.least) &&
                       meant <= static_cast<double>(range.most);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} must be a whole number from {} to {}: \"{}\"; {}", flag, range.least,
                           range.most, text,
                           is_near ? fmt::format("did you mean {:.0f}?", meant)
                                   : fmt::format("such as {} {}", flag, range.example))};
}

Result<double> number_of(std::string_view flag, const std::string& text, const NumberRange& range) {
  const auto is_in = [&](double value) { return value >= range.least && value <= range.most; };
  const auto value = read_whole_text<double>(text);
  if (value && is_in(*value)) return *value;
  const double meant = meant_by(text, /*takes_groups=*/false);
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} must be a number from {:g} to {:g}: \"{}\"; {}", flag, range.least,
                           range.most, text,
                           is_in(meant) ? fmt::format("did you mean {:g}?", meant)
                                        : fmt::format("such as {} {:g}", flag, range.example))};
}

}  // namespace muster
