// The float32 product for a CPU without AVX2.

#include "engine/ops/fp32_product.h"
#include "engine/ops/fp32_product_kernel.h"
#include "engine/ops/simd_portable.h"

namespace muster::engine {

void multiply_fp32_portable(const Fp32Matrix& matrix, std::size_t row_count, const float* x,
                            std::optional<Activation> activation, float* out) {
  multiply_fp32<SimdPortable>(matrix, row_count, x, activation, out);
}

}  // namespace muster::engine
