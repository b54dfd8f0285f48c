#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/ops/float16.h"
#include "engine/ops/panel_weight.h"

namespace muster::engine {

/// `Ops` of block_product_kernel.h as arrays: what the compiler makes of them runs on every CPU.
struct BlocksPortable {
  static constexpr std::size_t kRowsMax = 2;
  // There are no registers for two panels at once.
  static constexpr std::size_t kPairRowsMax = 0;
  static constexpr int kMiddleOfBytes = 0;
  static constexpr std::size_t kOutputs = kPanelOutputs;

  struct Ints {
    std::int32_t lane[kOutputs];
  };
  struct Bytes {
    std::uint8_t lane[4 * kOutputs];
  };
  struct Floats {
    float lane[kOutputs];
  };

  template <typename Set, typename Function>
  static Set map(Function&& function) {
    Set set;
    for (std::size_t i = 0; i < sizeof(set.lane) / sizeof(set.lane[0]); ++i) {
      set.lane[i] = function(i);
    }
    return set;
  }

  static Ints ints(std::int32_t value) {
    return map<Ints>([&](std::size_t) { return value; });
  }
  static Floats floats(float value) {
    return map<Floats>([&](std::size_t) { return value; });
  }
  static Floats load_floats(const float* from) {
    return map<Floats>([&](std::size_t i) { return from[i]; });
  }
  static Floats load_halves(const Float16* from) {
    return map<Floats>([&](std::size_t i) { return to_float(from[i]); });
  }
  static Bytes load_bytes(const std::byte* from) {
    Bytes bytes;
    std::memcpy(bytes.lane, from, sizeof bytes.lane);
    return bytes;
  }
  static Bytes low_halves(const Bytes& bytes) {
    return map<Bytes>(
        [&](std::size_t i) { return static_cast<std::uint8_t>(bytes.lane[i] & 0x0fU); });
  }
  static Bytes high_halves(const Bytes& bytes) {
    return map<Bytes>(
        [&](std::size_t i) { return static_cast<std::uint8_t>(bytes.lane[i] >> 4U); });
  }
  static Ints add_products_of_halves(const Bytes& quants, std::int32_t four, const Ints& sum) {
    return add_products(quants, four, sum, 0);
  }
  static Ints add_products_of_bytes(const Bytes& quants, std::int32_t four, const Ints& sum) {
    return add_products(quants, four, sum, 128);
  }
  static Floats to_floats(const Ints& sum) {
    return map<Floats>([&](std::size_t i) { return static_cast<float>(sum.lane[i]); });
  }
  static Floats multiply(const Floats& a, const Floats& b) {
    return map<Floats>([&](std::size_t i) { return a.lane[i] * b.lane[i]; });
  }
  static Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return map<Floats>([&](std::size_t i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  static void put(const Floats& sums, std::size_t count, bool adds, float* to) {
    for (std::size_t i = 0; i < count; ++i) to[i] = adds ? to[i] + sums.lane[i] : sums.lane[i];
  }

 private:
  static Ints add_products(const Bytes& quants, std::int32_t four, const Ints& sum, int middle) {
    std::int8_t inputs[4];
    std::memcpy(inputs, &four, sizeof inputs);
    return map<Ints>([&](std::size_t i) {
      std::int32_t total = sum.lane[i];
      for (std::size_t j = 0; j < 4; ++j) total += (quants.lane[4 * i + j] - middle) * inputs[j];
      return total;
    });
  }
};

}  // namespace muster::engine
