// Packing for the 8-bit product, and which one this CPU can run. A weight is rounded once, when a
// model is loaded, and the layout is one for all instruction sets.

#include "engine/ops/int8_product.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/ops/amx_tiles.h"
#include "engine/ops/kernels_by_cpu.h"

namespace muster::engine {
namespace {

constexpr float kQuantMost = 127.0F;
// Below it a scale would come near to numbers that lanes flush to zero.
constexpr float kLeast = 0x1p-100F;

// In the mode of the thread, which nobody changes: to the nearest, halves to even.
std::int8_t nearest(float value) {
  return static_cast<std::int8_t>(_mm_cvtss_si32(_mm_set_ss(value)));
}

float largest_of(const float* values, std::size_t count) {
  float largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(values[i]));
  }
  return largest;
}

// One output into its place in a panel of zeros; the sum of its quants.
std::int32_t pack_output(const float* weight, std::size_t in_size, float inverse,
                         std::int8_t* place) {
  constexpr auto kGroup = Int8Matrix::kGroup;
  std::int32_t sum = 0;
  for (std::size_t k = 0; k < in_size; ++k) {
    const std::int8_t quant = nearest(weight[k] * inverse);
    place[k / kGroup * Int8Matrix::kColumns * kGroup + k % kGroup] = quant;
    sum += quant;
  }
  return sum;
}

}  // namespace

Int8Scale int8_scale(float largest) {
  if (!std::isfinite(largest)) return {std::numeric_limits<float>::quiet_NaN(), 0};
  if (largest < kLeast) return {0, 0};
  return {largest / kQuantMost, kQuantMost / largest};
}

void pack_int8_panels(const float* weight, std::size_t out_size, std::size_t in_size,
                      const Int8Panels& to) {
  MUSTER_CHECK(in_size <= Int8Matrix::kInputsMost);
  const auto padded = Int8Matrix::padded_outputs(out_size);
  const auto row_size = Int8Matrix::padded_inputs(in_size);
  std::fill_n(to.panels, padded * row_size, std::int8_t{0});
  std::fill_n(to.scales, padded, 0.0F);
  std::fill_n(to.sums, padded, 0);
  for (std::size_t output = 0; output < out_size; ++output) {
    const float* row = weight + output * in_size;
    const auto scale = int8_scale(largest_of(row, in_size));
    to.scales[output] = scale.scale;
    if (scale.inverse == 0) continue;
    const auto column = output % Int8Matrix::kColumns;
    auto* place = to.panels + (output - column) * row_size + column * Int8Matrix::kGroup;
    to.sums[output] = pack_output(row, in_size, scale.inverse, place);
  }
}

std::vector<const Int8Kernels*> int8_kernels_available() {
  std::vector<const Int8Kernels*> available{&kInt8Portable};
  for (const auto* kernels : kernels_available()) {
    if (kernels == &kAvx2Kernels) available.push_back(&kInt8Avx2);
    const bool is_wide = kernels == &kAvx512Kernels;
    if (is_wide && __builtin_cpu_supports("avx512vnni")) available.push_back(&kInt8Avx512Vnni);
  }
  if (has_amx_tiles()) available.push_back(&kInt8Amx);
  return available;
}

const Int8Kernels& best_int8_kernels() { return *int8_kernels_available().back(); }

}  // namespace muster::engine
