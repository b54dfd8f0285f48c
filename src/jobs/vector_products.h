#pragma once

#include <span>

namespace muster {

/// Products of a row with a query and with itself.
struct RowProducts {
  double with_query = 0;
  double with_itself = 0;
};

/// Sums of products of float32, each exact in float64 and added in one order: every instruction set
/// gives the same bits.
///
/// Shapes: both [dim]. Cost: with AVX2 about what reading the row from memory takes.
RowProducts multiply_row(std::span<const float> row, std::span<const float> query);

/// The first of the two alone. Its bits are those of `multiply_row`.
double dot_product(std::span<const float> a, std::span<const float> b);

/// The cosine from a product and the squares of both lengths, within -1 and 1; not finite where one
/// has no direction.
double cosine_of(double product, double square_a, double square_b);

}  // namespace muster
