// Which loops of a decoder this CPU can run, by what it can do.

#include "engine/ops/decoder_kernels.h"

#include "engine/ops/amx_tiles.h"
#include "engine/ops/bf16_product.h"
#include "engine/ops/decoder_kernels_by_cpu.h"
#include "engine/ops/kernels_by_cpu.h"

namespace muster::engine {
namespace {

bool has(const Kernels& kernels) {
  for (const auto* available : kernels_available()) {
    if (available == &kernels) return true;
  }
  return false;
}

DecoderKernels with_extensions(DecoderKernels kernels) {
  const bool has_bf16 = has_avx512_bf16();
  const bool has_vnni = __builtin_cpu_supports("avx512vnni");
  kernels.name = has_bf16 ? (has_vnni ? "avx512+bf16+vnni" : "avx512+bf16")
                          : (has_vnni ? "avx512+vnni" : "avx512");
  if (has_bf16) kernels.multiply_bf16 = multiply_bf16_avx512_bf16;
  if (has_vnni) {
    kernels.multiply_q4_0 = multiply_q4_0_avx512_vnni;
    kernels.multiply_q4_1 = multiply_q4_1_avx512_vnni;
    kernels.multiply_q8_0 = multiply_q8_0_avx512_vnni;
    kernels.multiply_int8 = multiply_int8_avx512_vnni;
  }
  if (has_bf16 && has_vnni) {
    kernels.keep_fp16 = keep_fp16_avx512_pairs;
    kernels.attend_fp16 = attend_fp16_avx512_pairs;
  }
  return kernels;
}

DecoderKernels with_tiles(DecoderKernels kernels) {
  kernels.name = "avx512+vnni+amx";
  kernels.interleaves_panels = false;  // a tile takes whole panels
  kernels.multiply_bf16 = multiply_bf16_amx;
  kernels.multiply_q4_0 = multiply_q4_0_amx;
  kernels.multiply_q4_1 = multiply_q4_1_amx;
  kernels.multiply_q8_0 = multiply_q8_0_amx;
  kernels.multiply_int8 = multiply_int8_amx;
  kernels.keep_fp16 = keep_fp16_amx;
  kernels.attend_fp16 = attend_fp16_amx;
  return kernels;
}

/// Kernels with the attention of others.
DecoderKernels attending_as(DecoderKernels kernels, const DecoderKernels& others) {
  kernels.keep_fp16 = others.keep_fp16;
  kernels.attend_fp16 = others.attend_fp16;
  return kernels;
}

}  // namespace

PanelProduct DecoderKernels::product(WeightFormat format) const {
  switch (format) {
    case WeightFormat::Fp32:
      return multiply_fp32;
    case WeightFormat::Bf16:
      return multiply_bf16;
    case WeightFormat::Q4_0:
      return multiply_q4_0;
    case WeightFormat::Q4_1:
      return multiply_q4_1;
    case WeightFormat::Q8_0:
      return multiply_q8_0;
    case WeightFormat::Int8:
      return multiply_int8;
  }
  return nullptr;
}

std::vector<DecoderKernels> decoder_kernels_available() {
  std::vector<DecoderKernels> available{kPortableDecoderKernels};
  if (has(kAvx2Kernels) && __builtin_cpu_supports("f16c")) {
    available.push_back(kAvx2DecoderKernels);
    if (has(kAvx512Kernels)) {
      available.push_back(kAvx512DecoderKernels);
      available.push_back(with_extensions(kAvx512DecoderKernels));
      if (has_amx_tiles()) available.push_back(with_tiles(available.back()));
    }
  }
  return available;
}

const DecoderKernels& best_decoder_kernels() {
  static const DecoderKernels best = decoder_kernels_available().back();
  return best;
}

// Measured with SmolLM2, a mean KL to fp32. In its own bits: attention by tiles 0.0104, in float32
// over 11 bits 0.0093. In blocks of Q8_0: float32 over 11 bits 0.00823, with values and weights in
// bf16 0.00800, which are what pairs have.
const DecoderKernels& decoder_kernels_of(DecoderPrecision precision) {
  static const auto available = decoder_kernels_available();
  static const DecoderKernels without_tiles = attending_as(
      best_decoder_kernels(), has_amx_tiles() ? *(available.end() - 2) : available.back());
  static const DecoderKernels exact = attending_as(
      best_decoder_kernels(), has(kAvx512Kernels) ? kAvx512DecoderKernels : available.back());
  if (precision == DecoderPrecision::Fp32) return exact;
  return precision == DecoderPrecision::Bf16 ? best_decoder_kernels() : without_tiles;
}

}  // namespace muster::engine
