#pragma once

#include "engine/ops/decoder_kernels.h"

namespace muster::engine {

// One per instruction set, each in a file of its own; running one on a CPU without it is SIGILL.
extern const DecoderKernels kPortableDecoderKernels;
extern const DecoderKernels kAvx2DecoderKernels;
extern const DecoderKernels kAvx512DecoderKernels;

// The products that two extensions of AVX-512 have instructions for.
void multiply_bf16_avx512_bf16(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out);
void multiply_q4_0_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out);
void multiply_q4_1_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out);
void multiply_q8_0_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out);
void multiply_int8_avx512_vnni(const PanelWeight& weight, std::size_t panel_begin,
                               std::size_t panel_end, const ProductRows& x, const ProductOut& out);

// The same by AMX's tiles, for a CPU with both extensions as well; blocks with the bits of VNNI.
void multiply_bf16_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out);
void multiply_q4_0_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out);
void multiply_q4_1_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out);
void multiply_q8_0_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out);
void multiply_int8_amx(const PanelWeight& weight, std::size_t panel_begin, std::size_t panel_end,
                       const ProductRows& x, const ProductOut& out);

// `attend_fp16` in pairs of 16-bit numbers, for a CPU with both extensions, and what it reads.
void keep_fp16_avx512_pairs(std::size_t head_size, std::size_t place, const float* key,
                            const float* value, Float16* block);
void attend_fp16_avx512_pairs(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                              const AttentionExtras& extras, float* scratch);

// The same by tiles, for a CPU with both extensions as well.
void keep_fp16_amx(std::size_t head_size, std::size_t place, const float* key, const float* value,
                   Float16* block);
void attend_fp16_amx(const PagedHead<Float16>& head, std::span<const AttentionRow> rows,
                     const AttentionExtras& extras, float* scratch);

}  // namespace muster::engine
