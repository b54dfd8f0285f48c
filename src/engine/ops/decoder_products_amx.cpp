// Products of panels by AMX's tiles. A panel stands in memory as tiles read it. bf16 weights go
// through them whatever the number of rows, since the order of sums is the tiles' own. Blocks of
// inputs have exact integer sums, the same as those of VNNI, so tiles take them only where there
// are rows enough to fill them.

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
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx512vnni,avx2,fma,f16c")
#include "engine/ops/amx_tiles.h"
#include "engine/ops/block_tile_product_kernel.h"
#include "engine/ops/int8_tile_product_kernel.h"
#include "engine/ops/panel_tile_product_kernel.h"
#include "engine/ops/simd_avx512.h"

namespace muster::engine {
namespace {

// A type of this file's own, as in decoder_kernels_avx512.cpp.
struct SimdAmx final : SimdAvx512 {};

/// Blocks by tiles where rows fill them, else by VNNI.
template <WeightFormat kFormat, PanelProduct kOfFewRows>
void multiply_blocks(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                     const ProductRows& x, const ProductOut& out) {
  if (x.count < block_tile_rows_least(kFormat)) {
    return kOfFewRows(weight, panel_begin, panel_end, x, out);
  }
  multiply_by_tiles(BlockTiles<SimdAmx, kFormat>{weight, x, out}, panel_begin, panel_end, x.count);
}

}  // namespace

void multiply_bf16_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out) {
  multiply_by_tiles(PanelTiles<SimdAmx>{weight, x, out}, panel_begin, panel_end, x.count);
}

void multiply_q4_0_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out) {
  multiply_blocks<WeightFormat::Q4_0, multiply_q4_0_avx512_vnni>(weight, panel_begin, panel_end, x,
                                                                 out);
}

void multiply_q4_1_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out) {
  multiply_blocks<WeightFormat::Q4_1, multiply_q4_1_avx512_vnni>(weight, panel_begin, panel_end, x,
                                                                 out);
}

void multiply_q8_0_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out) {
  multiply_blocks<WeightFormat::Q8_0, multiply_q8_0_avx512_vnni>(weight, panel_begin, panel_end, x,
                                                                 out);
}

void multiply_int8_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out) {
  if (x.count < kInt8TileRowsLeast) {
    return multiply_int8_avx512_vnni(weight, panel_begin, panel_end, x, out);
  }
  multiply_by_tiles(Int8Tiles<SimdAmx>{weight, x, out}, panel_begin, panel_end, x.count);
}

}  // namespace muster::engine
