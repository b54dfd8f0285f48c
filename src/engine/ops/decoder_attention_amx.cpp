// Attention over a paged cache in float16 by AMX's tiles, in bf16, for a strip of up to 32 rows of
// one sequence that share a head of keys. Positions are taken in chunks that begin at multiples of
// kChunk: scores of a chunk, softmax, weighted sum of the values.
//
// A row's result depends on its own positions alone, in their order: chunks and the 32 positions
// that a tile sums stand where they do whatever the strip is, a tile gives each row its own sums,
// and a position that a row does not see has weight zero, which changes no bit of its sums. Where
// the value of such a position is not finite, the row is computed once more, alone.

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
#include "engine/ops/bf16_attention_kernel.h"
#include "engine/ops/few_row_attention_kernel.h"
#include "engine/ops/paged_attention_kernel.h"
#include "engine/ops/row_kernel.h"
#include "engine/ops/simd_avx512.h"
#include "engine/ops/tile_attention_kernel.h"

namespace muster::engine {
namespace {

// A type of this file's own, as in decoder_kernels_avx512.cpp.
struct SimdAmx final : SimdAvx512 {};

/// Wider heads are computed without tiles, from keys and values that keep their 11 bits.
constexpr std::size_t kHeadMost = 256;

/// The largest number that both bf16 and float16 have.
constexpr float kHeldMax = 65280.0F;

/// The floats of a tile's products count denormal numbers as zero, and so does all else here.
class FlushDenormals {
 public:
  FlushDenormals() { _mm_setcsr(before_ | kFlush); }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlush = 0x8040;  // results (FTZ) and operands (DAZ)
  unsigned before_ = _mm_getcsr();
};

template <int kRowTiles, std::size_t kHeadMax>
[[gnu::noinline]] std::uint32_t attend_by_tiles(const PagedHead<Float16>& head,
                                                std::span<const AttentionRow> rows,
                                                const AttentionExtras& extras) {
  TileStrip<SimdAmx, kRowTiles, kHeadMax> strip;
  start_strip(strip, head.head_size, rows);
  const TileUse use(tile_shapes<kRowTiles>(rows.size() - (kRowTiles - 1) * kTileRows));
  return attend_chunks(head, rows, extras, strip);
}

template <std::size_t kRows>
using Few = FewStrip<SimdAmx, kRows>;

std::uint32_t attend_rows(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                          const AttentionExtras& extras) {
  if (rows.size() == 1) return attend_strip_as<Few<1>>(head, rows, extras);
  if (rows.size() == 2) return attend_strip_as<Few<2>>(head, rows, extras);
  if (rows.size() == 3) return attend_strip_as<Few<3>>(head, rows, extras);
  if (head.head_size > 128) return attend_by_tiles<1, 256>(head, rows, extras);
  if (rows.size() > kTileRows) return attend_by_tiles<2, 128>(head, rows, extras);
  return attend_by_tiles<1, 128>(head, rows, extras);
}

/// Numbers of bf16 in float16: to the nearest, and beyond what both have it stays there.
void halve_as_bf16(std::size_t size, const float* x, Float16* out) {
  for (std::size_t at = 0; at < size; at += SimdAmx::kWidth) {
    const std::size_t count = std::min(SimdAmx::kWidth, size - at);
    // The second operand is the one that stays where it is not a number.
    const auto value =
        SimdAmx::min(SimdAmx::broadcast(kHeldMax), SimdAmx::load_first(x + at, count));
    const auto held = SimdAmx::max(SimdAmx::broadcast(-kHeldMax), value);
    const auto narrow = rounded(held, SimdAmx::broadcast(0));
    _mm256_mask_storeu_epi16(out + at, SimdAmx::mask(count),
                             _mm512_cvtps_ph(widened<SimdAmx, 0>(narrow),
                                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
}

}  // namespace

void keep_fp16_amx(std::size_t head_size, std::size_t place, const float* key, const float* value,
                   Float16* block) {
  if (head_size > kHeadMost) {
    return kAvx512DecoderKernels.keep_fp16(head_size, place, key, value, block);
  }
  keep_halves(head_size, place, key, value, block, halve_as_bf16);
}

void attend_fp16_amx(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                     const AttentionExtras& extras, float* scratch) {
  if (head.head_size > kHeadMost)
    return kAvx512DecoderKernels.attend_fp16(head, rows, extras, scratch);
  const FlushDenormals flush;
  const std::size_t most = head.head_size > 128 ? kTileRows : 2 * kTileRows;
  for (std::size_t begin = 0; begin < rows.size(); begin += most) {
    const auto strip = rows.subspan(begin, std::min(most, rows.size() - begin));
    for (auto lost = attend_rows(head, strip, extras); lost != 0; lost &= lost - 1) {
      attend_strip_as<Few<1>>(
          head, strip.subspan(static_cast<std::size_t>(std::countr_zero(lost)), 1), extras);
    }
  }
}

}  // namespace muster::engine
