// Shares as marks, in the finest steps that the characters have.
#include "terminal/bars.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace muster {
namespace {

constexpr std::size_t kEighths = 8;
constexpr std::array<std::string_view, kEighths + 1> kAcross{"",  "▏", "▎", "▍", "▌",
                                                             "▋", "▊", "▉", "█"};
constexpr std::array<std::string_view, kEighths> kUpright{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, kEighths> kUprightAscii{"_", ".", ":", "-",
                                                               "=", "+", "*", "#"};

}  // namespace

std::string bar_text(double share, std::size_t width, CharacterSet characters) {
  const auto inside = std::clamp(share, 0.0, 1.0);
  const auto steps = characters == CharacterSet::Utf8 ? kEighths : 1;
  auto filled = static_cast<std::size_t>(
      std::lround(inside * static_cast<double>(width) * static_cast<double>(steps)));
  if (filled == 0 && inside > 0 && width > 0) filled = 1;
  std::string bar;
  for (std::size_t i = 0; i < filled / steps; ++i) {
    bar += characters == CharacterSet::Utf8 ? kAcross[kEighths] : "#";
  }
  auto columns = filled / steps;
  if (filled % steps != 0) {
    bar += kAcross[filled % steps];
    ++columns;
  }
  bar.append(width - columns, ' ');
  return bar;
}

std::string sparkline_text(std::span<const std::optional<double>> values, CharacterSet characters) {
  const auto& marks = characters == CharacterSet::Utf8 ? kUpright : kUprightAscii;
  std::string line;
  for (const auto& value : values) {
    if (!value) {
      line += ' ';
      continue;
    }
    const auto height = std::lround(std::clamp(*value, 0.0, 1.0) * (kEighths - 1));
    line += marks[static_cast<std::size_t>(height)];
  }
  return line;
}

std::vector<std::string> plot_rows(std::span<const std::optional<double>> values,
                                   std::size_t height, CharacterSet characters) {
  const bool is_utf8 = characters == CharacterSet::Utf8;
  const auto steps = is_utf8 ? kEighths : 2;  // of a row
  std::vector<std::string> rows(height);
  for (const auto& value : values) {
    const auto share = std::clamp(value.value_or(0), 0.0, 1.0);
    auto filled =
        static_cast<std::size_t>(std::lround(share * static_cast<double>(height * steps)));
    if (value) filled = std::max<std::size_t>(filled, 1);
    for (std::size_t from_below = 0; from_below < height; ++from_below) {
      auto& row = rows[height - 1 - from_below];
      const auto inside = std::min(steps, filled - std::min(filled, from_below * steps));
      if (inside == 0) {
        row += ' ';
      } else if (is_utf8) {
        row += kUpright[inside - 1];
      } else {
        row += inside == steps ? '#' : ':';
      }
    }
  }
  return rows;
}

}  // namespace muster
