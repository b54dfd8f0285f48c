// A vector in fewer bits.

#include "server/quantized_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace muster {
namespace {

constexpr int kSignedShift = 128;  // between the signed and the unsigned form

void append_number(int number, std::string& out) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
  out += ',';
}

void append_bits(std::span<const float> row, int shift, std::string& out) {
  constexpr std::size_t kBits = 8;
  for (std::size_t start = 0; start < row.size(); start += kBits) {
    int byte = 0;
    for (std::size_t i = 0; i < kBits; ++i) {
      const bool is_set = start + i < row.size() && row[start + i] > 0;
      byte = byte * 2 + (is_set ? 1 : 0);
    }
    append_number(byte - shift, out);
  }
}

void append_steps(std::span<const float> row, int shift, std::string& out) {
  constexpr double kRange = 4;  // in root mean squares
  constexpr double kSteps = 255;
  double square_sum = 0;
  for (const float value : row) square_sum += static_cast<double>(value) * value;
  const double mean_square = square_sum / static_cast<double>(row.size());
  const double range = kRange * (mean_square > 0 ? std::sqrt(mean_square) : 1);
  const double step = 2 * range / kSteps;
  for (const float value : row) {
    const double place = std::clamp(std::floor((value + range) / step), 0.0, kSteps);
    append_number(static_cast<int>(place) - shift, out);
  }
}

}  // namespace

void append_quantized(std::span<const float> row, EmbeddingFormat format, std::string& out) {
  switch (format) {
    case EmbeddingFormat::Int8:
      append_steps(row, kSignedShift, out);
      break;
    case EmbeddingFormat::Uint8:
      append_steps(row, 0, out);
      break;
    case EmbeddingFormat::Binary:
      append_bits(row, kSignedShift, out);
      break;
    default:
      append_bits(row, 0, out);
      break;
  }
  if (!row.empty()) out.pop_back();  // the last comma
}

}  // namespace muster
