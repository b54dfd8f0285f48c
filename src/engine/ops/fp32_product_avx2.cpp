// The float32 product with AVX2 and FMA: 6 rows by 16 outputs are 12 of 16 registers.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/ops/fp32_product.h"
#include "engine/ops/kernels.h"

// As in kernels_avx2.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC target("avx2,fma")
#include "engine/ops/fp32_product_kernel.h"
#include "engine/ops/simd_avx2.h"

namespace muster::engine {

void multiply_fp32_avx2(const Fp32Matrix& matrix, std::size_t row_count, const float* x,
                        std::optional<Activation> activation, float* out) {
  multiply_fp32<SimdAvx2>(matrix, row_count, x, activation, out);
}

}  // namespace muster::engine
