// Attention over a paged cache in pairs of 16-bit numbers, for a strip of up to 6 rows of one
// sequence that share a head of keys. As by AMX's tiles a row's result depends on its own positions
// alone, in their order: chunks of positions stand where they do whatever the strip is, and a
// position that a row does not see has weight zero. Where the value of such a position is not
// finite, the row is computed once more, alone.

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
#include "engine/ops/bf16_attention_kernel.h"
#include "engine/ops/pair_attention_kernel.h"
#include "engine/ops/simd_avx512.h"
#include "engine/ops/strips.h"

namespace muster::engine {
namespace {

// A type of this file's own, as in decoder_kernels_avx512.cpp.
struct SimdPairs final : SimdAvx512 {};

/// Other heads are computed from keys and values of 11 bits, in float32.
bool is_by_pairs(std::size_t head_size) {
  return head_size % 16 == 0 && head_size <= PairStrip<SimdPairs, 1>::kHeadMax;
}

}  // namespace

void keep_fp16_avx512_pairs(std::size_t head_size, std::size_t place, const float* key,
                            const float* value, Float16* block) {
  if (!is_by_pairs(head_size)) {
    return kAvx512DecoderKernels.keep_fp16(head_size, place, key, value, block);
  }
  put_key<SimdPairs>(head_size, place, key, block);
  put_value<SimdPairs>(head_size, place, value, block);
}

void attend_fp16_avx512_pairs(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                              const AttentionExtras& extras, float* scratch) {
  if (!is_by_pairs(head.head_size)) {
    return kAvx512DecoderKernels.attend_fp16(head, rows, extras, scratch);
  }
  for_each_strip<SimdPairs::kRowsMax>(rows.size(), [&]<std::size_t kRows>(std::size_t begin) {
    const auto strip = rows.subspan(begin, kRows);
    for (auto lost = attend_strip_as<PairStrip<SimdPairs, kRows>>(head, strip, extras); lost != 0;
         lost &= lost - 1) {
      const auto row = static_cast<std::size_t>(std::countr_zero(lost));
      attend_strip_as<PairStrip<SimdPairs, 1>>(head, strip.subspan(row, 1), extras);
    }
  });
}

}  // namespace muster::engine
