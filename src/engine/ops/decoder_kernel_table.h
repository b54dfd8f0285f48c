#pragma once

#include <cstdint>

#include "engine/ops/block_product_kernel.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/int8_panel_product_kernel.h"
#include "engine/ops/paged_attention_kernel.h"
#include "engine/ops/panel_product_kernel.h"
#include "engine/ops/row_kernel.h"

namespace muster::engine {

/// All loops of `DecoderKernels` for one instruction set.
template <typename Simd, typename Blocks>
constexpr DecoderKernels decoder_kernel_table(std::string_view name) {
  return {
      .name = name,
      .multiply_fp32 = multiply_panels<Fp32Steps<Simd>>,
      .multiply_bf16 = multiply_panels<Bf16Steps<Simd>>,
      .multiply_q4_0 = multiply_block_panels<Blocks, WeightFormat::Q4_0>,
      .multiply_q4_1 = multiply_block_panels<Blocks, WeightFormat::Q4_1>,
      .multiply_q8_0 = multiply_block_panels<Blocks, WeightFormat::Q8_0>,
      .multiply_int8 = multiply_int8_panels<Blocks>,
      .interleaves_panels = false,
      .rms_norm = rms_norm_row<Simd>,
      .layer_norm = layer_norm_row<Simd>,
      .gate = gate_row<Simd>,
      .gate_blocks = gate_blocks_row<Simd>,
      .gate_transformed = gate_transformed_row<Simd>,
      .rotate = rotate_row<Simd>,
      .add = add_row<Simd>,
      .narrow = narrow_row<Simd>,
      .quantize = quantize_row<Simd>,
      .quantize_transformed = quantize_transformed_row<Simd>,
      .quantize_head = quantize_head_row<Simd>,
      .keep_fp16 = keep_fp16_rows<Simd>,
      .attend_fp32 = attend_paged<Simd, float>,
      .attend_fp16 = attend_paged<Simd, Float16>,
      .attend_int8 = attend_paged<Simd, std::int8_t>,
      .attention_rows = Simd::kRowsMax,
      .largest = index_of_largest<Simd>,
      .weigh = weigh_row<Simd>,
  };
}

}  // namespace muster::engine
