#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "engine/ops/bfloat16.h"
#include "engine/ops/float16.h"

namespace muster::engine {

/// Vectors as arrays of 8 floats: what the compiler makes of them runs on every CPU.
struct SimdPortable {
  static constexpr std::size_t kWidth = 8;
  // Accumulators that fit 16 registers of 4 floats.
  static constexpr std::size_t kRowsMax = 3;
  static constexpr std::size_t kVectorsMax = 2;

  struct Vector {
    float lane[kWidth];
  };

  template <typename Function>
  static Vector map(Function&& function) {
    Vector result;
    for (std::size_t i = 0; i < kWidth; ++i) result.lane[i] = function(i);
    return result;
  }

  static Vector broadcast(float value) {
    return map([&](std::size_t) { return value; });
  }
  static Vector load(const float* from) {
    return map([&](std::size_t i) { return from[i]; });
  }
  static Vector load(const Bfloat16* from) {
    return map([&](std::size_t i) { return to_float(from[i]); });
  }
  static Vector load(const Float16* from) {
    return map([&](std::size_t i) { return to_float(from[i]); });
  }
  static Vector load(const std::int8_t* from) {
    return map([&](std::size_t i) { return static_cast<float>(from[i]); });
  }
  template <typename T>
  static Vector load_first(const T* from, std::size_t count) {
    return map([&](std::size_t i) { return i < count ? to_float(from[i]) : 0.0F; });
  }
  static void store(float* to, const Vector& value) { std::copy_n(value.lane, kWidth, to); }
  static void store(Bfloat16* to, const Vector& value) { store_first(to, value, kWidth); }
  static void store(Float16* to, const Vector& value) {
    for (std::size_t i = 0; i < kWidth; ++i) to[i] = to_float16(value.lane[i]);
  }
  static void store_first(float* to, const Vector& value, std::size_t count) {
    std::copy_n(value.lane, count, to);
  }
  static void store_first(Bfloat16* to, const Vector& value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = to_bfloat16(value.lane[i]);
  }

  /// Whole numbers of -128..127.
  static void store_bytes(std::int8_t* to, const Vector& value) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      // Not a number: what the instructions make of it.
      const bool is_number = value.lane[i] == value.lane[i];
      to[i] =
          is_number ? static_cast<std::int8_t>(std::clamp(value.lane[i], -128.0F, 127.0F)) : -128;
    }
  }

  /// 2 x kWidth values as two vectors: those of even and those of odd places.
  static void load_pairs(const Bfloat16* from, Vector& even, Vector& odd) {
    even = map([&](std::size_t i) { return to_float(from[2 * i]); });
    odd = map([&](std::size_t i) { return to_float(from[2 * i + 1]); });
  }

  static Vector add(const Vector& a, const Vector& b) {
    return map([&](std::size_t i) { return a.lane[i] + b.lane[i]; });
  }
  static Vector subtract(const Vector& a, const Vector& b) {
    return map([&](std::size_t i) { return a.lane[i] - b.lane[i]; });
  }
  static Vector multiply(const Vector& a, const Vector& b) {
    return map([&](std::size_t i) { return a.lane[i] * b.lane[i]; });
  }
  static Vector multiply_add(const Vector& a, const Vector& b, const Vector& c) {
    return map([&](std::size_t i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
  }
  static Vector divide(const Vector& a, const Vector& b) {
    return map([&](std::size_t i) { return a.lane[i] / b.lane[i]; });
  }
  // As the instructions do: the second one where either is not a number.
  static Vector max(const Vector& a, const Vector& b) {
    return map([&](std::size_t i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static Vector min(const Vector& a, const Vector& b) {
    return map([&](std::size_t i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  /// a where the sign bit of `sign` is set, else b.
  static Vector select_negative(const Vector& sign, const Vector& a, const Vector& b) {
    return map([&](std::size_t i) { return std::signbit(sign.lane[i]) ? a.lane[i] : b.lane[i]; });
  }
  /// The first `count` lanes of `a`, the others from `b`.
  static Vector first(const Vector& a, const Vector& b, std::size_t count) {
    return map([&](std::size_t i) { return i < count ? a.lane[i] : b.lane[i]; });
  }
  static Vector round(const Vector& a) {
    return map([&](std::size_t i) { return std::nearbyint(a.lane[i]); });
  }
  /// a x 2^n for whole n of -126..127.
  static Vector scale_by_power(const Vector& a, const Vector& n) {
    return map([&](std::size_t i) {
      // What is not a number has no power; `a` is none then, either.
      const float power = n.lane[i] >= -126.0F && n.lane[i] <= 127.0F ? n.lane[i] : 0.0F;
      const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(power) + 127);
      return a.lane[i] * std::bit_cast<float>(exponent << 23U);
    });
  }
  static float sum(const Vector& a) {
    float half[4];
    for (std::size_t i = 0; i < 4; ++i) half[i] = a.lane[i] + a.lane[i + 4];
    return (half[0] + half[2]) + (half[1] + half[3]);
  }
  static float largest(const Vector& a) { return *std::max_element(a.lane, a.lane + kWidth); }

  /// Transposes kWidth x kWidth: vector c of the result holds element c of every row.
  static void transpose(Vector (&rows)[kWidth]) {
    for (std::size_t i = 0; i < kWidth; ++i) {
      for (std::size_t j = 0; j < i; ++j) std::swap(rows[i].lane[j], rows[j].lane[i]);
    }
  }
};

}  // namespace muster::engine
