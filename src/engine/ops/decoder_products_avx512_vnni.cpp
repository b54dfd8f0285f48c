// The products of weights in blocks with the instruction that multiplies bytes and adds four
// products to an integer.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ops/decoder_kernels_by_cpu.h"

// As in kernels_avx512.cpp: everything of the standard library is included above.
#include <immintrin.h>
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
#include "engine/ops/block_product_kernel.h"
#include "engine/ops/blocks_avx512_vnni.h"
#include "engine/ops/int8_panel_product_kernel.h"

namespace muster::engine {

void multiply_q4_0_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out) {
  multiply_block_panels<BlocksAvx512Vnni, WeightFormat::Q4_0>(weight, panel_begin, panel_end, x,
                                                              out);
}

void multiply_q4_1_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out) {
  multiply_block_panels<BlocksAvx512Vnni, WeightFormat::Q4_1>(weight, panel_begin, panel_end, x,
                                                              out);
}

void multiply_q8_0_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out) {
  multiply_block_panels<BlocksAvx512Vnni, WeightFormat::Q8_0>(weight, panel_begin, panel_end, x,
                                                              out);
}

void multiply_int8_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out) {
  multiply_int8_panels<BlocksAvx512Vnni>(weight, panel_begin, panel_end, x, out);
}

}  // namespace muster::engine
