// Operators that compute a text, or a row, by itself: a sum over many rows at once would be split
// by how many there are, and a vector's bits would depend on its company.

#include "engine/ops/segment_pooling.h"

#include <ATen/ops/_fused_rms_norm.h>
#include <ATen/ops/segment_reduce.h>

#include <cmath>

namespace muster::engine {
namespace {

// Under the root, so a row of zeros stays one; as small as the limit of `normalize_row`, squared.
constexpr double kEpsilon = 1e-24;

at::Tensor reduce(const at::Tensor& hidden, const at::Tensor& offsets, c10::string_view how) {
  return at::segment_reduce(hidden.to(at::kFloat), how, {}, {}, offsets, /*axis=*/0,
                            /*unsafe=*/true);
}

}  // namespace

at::Tensor pool_texts(Pooling pooling, const at::Tensor& hidden, const at::Tensor& offsets) {
  const auto texts = offsets.size(0) - 1;
  switch (pooling) {
    case Pooling::Cls:
      // An empty text at the end begins behind the last row.
      return hidden.index_select(0, offsets.narrow(0, 0, texts).clamp_max(hidden.size(0) - 1))
          .to(at::kFloat);
    case Pooling::Last:
      return hidden.index_select(0, offsets.narrow(0, 1, texts).sub(1)).to(at::kFloat);
    case Pooling::Mean:
      return reduce(hidden, offsets, "mean");
    case Pooling::Max:
      return reduce(hidden, offsets, "max");
  }
  return {};
}

at::Tensor normalize_rows(const at::Tensor& rows) {
  const auto dim = rows.size(1);
  const auto scaled = std::get<0>(at::_fused_rms_norm(rows, {dim}, {}, kEpsilon));
  return scaled.mul(1.0 / std::sqrt(static_cast<double>(dim)));
}

}  // namespace muster::engine
