#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "engine/ops/activation_kernel.h"
#include "engine/ops/bf16_product.h"

namespace muster::engine {

/// `Ops` is one of the instruction sets for floats (simd_avx512.h) with these:
///
///   kBiasIsLast   whether the bias is still to be added to the sums
///   round_first   the first of kWidth floats, rounded to bf16 by the CPU's own instruction
///
/// It is a type of its own in each source, so that nothing here is compiled for two instruction
/// sets under one name.

/// What a row's finished sums of some columns become.
struct Bf16Finish {
  const float* bias = nullptr;   // of the columns, up to whole vectors
  std::size_t column_count = 0;  // of `out`; `sums` go on to whole vectors
};

/// `apply` changes a vector where it stands, as in `finish_int8_by`.
template <typename Ops, typename Apply>
[[gnu::always_inline]] inline void finish_bf16_by(const Bf16Finish& finish, const float* sums,
                                                  Bfloat16* out, Apply&& apply) {
  constexpr std::size_t kWidth = Ops::kWidth;
  for (std::size_t c = 0; c < finish.column_count; c += kWidth) {
    auto value = Ops::load(sums + c);
    if constexpr (Ops::kBiasIsLast) value = Ops::add(value, Ops::load(finish.bias + c));
    apply(value);
    Ops::round_first(out + c, value, std::min(kWidth, finish.column_count - c));
  }
}

/// Bias, activation, and the one rounding.
template <typename Ops>
void finish_bf16_row(std::optional<Activation> activation, const Bf16Finish& finish,
                     const float* sums, Bfloat16* out) {
  using Vector = typename Ops::Vector;
  if (!activation) return finish_bf16_by<Ops>(finish, sums, out, [](Vector&) {});
  switch (*activation) {
    case Activation::Gelu:
      return finish_bf16_by<Ops>(finish, sums, out, [](Vector& x) { x = gelu<Ops>(x); });
    case Activation::GeluTanh:
      return finish_bf16_by<Ops>(finish, sums, out, [](Vector& x) { x = gelu_tanh<Ops>(x); });
    case Activation::Relu:
      return finish_bf16_by<Ops>(finish, sums, out, [](Vector& x) { x = relu<Ops>(x); });
  }
}

}  // namespace muster::engine
