// The 8-bit product for a CPU without AVX2. Its fused multiplication is the C library's, once for
// each value of the result.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/int8_product.h"
#include "engine/ops/int8_product_kernel.h"
#include "engine/ops/simd_portable.h"

namespace muster::engine {
namespace {

struct Int8OpsPortable : SimdPortable {
  static constexpr int kRowOffset = 0;
  static constexpr std::size_t kStripRowsMax = 2;
  static constexpr std::size_t kTileVectors = 1;
  static constexpr std::size_t kGroup = Int8Matrix::kGroup;

  struct Ints {
    std::int32_t lane[kWidth];
  };
  struct Weights {
    std::int8_t lane[kWidth * kGroup];
  };
  struct Inputs {
    std::int8_t lane[kGroup];
  };

  static Ints first_sums(const std::int32_t*) { return {}; }
  static Weights load_weights(const std::int8_t* from) {
    Weights weights;
    std::memcpy(weights.lane, from, sizeof weights.lane);
    return weights;
  }
  static Inputs load_inputs(const std::uint8_t* from) {
    Inputs inputs;
    std::memcpy(inputs.lane, from, sizeof inputs.lane);
    return inputs;
  }
  static Ints add_products(const Inputs& inputs, const Weights& weights, const Ints& sums) {
    Ints result = sums;
    for (std::size_t i = 0; i < kWidth; ++i) {
      for (std::size_t j = 0; j < kGroup; ++j) {
        result.lane[i] += inputs.lane[j] * weights.lane[i * kGroup + j];
      }
    }
    return result;
  }
  static void store_sums(std::int32_t* to, const Ints& sums) {
    std::memcpy(to, sums.lane, sizeof sums.lane);
  }
  static Vector scaled(const std::int32_t* sums, const Vector& scale, const Vector& bias) {
    return map([&](std::size_t i) {
      return std::fma(static_cast<float>(sums[i]), scale.lane[i], bias.lane[i]);
    });
  }
  static void store_bytes(std::uint8_t* to, const Vector& value) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      const auto quant = static_cast<std::int8_t>(std::nearbyint(value.lane[i]));
      to[i] = static_cast<std::uint8_t>(quant);
    }
  }
};

}  // namespace

const Int8Kernels kInt8Portable{"portable", Int8OpsPortable::kRowOffset,
                                quantize_int8<Int8OpsPortable>, multiply_int8<Int8OpsPortable>};

}  // namespace muster::engine
