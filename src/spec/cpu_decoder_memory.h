#pragma once

#include <cstdint>
#include <optional>

#include "spec/decoder_spec.h"
#include "spec/generation.h"
#include "spec/model_weights.h"

namespace muster {

/// What the engine takes for a decoder on a CPU, array by array: who plans a worker and who tests
/// one read the same formula. All sizes are in bytes; e is 4 in fp32 and 2 else.
///
/// Threads: pure. Needs: a description whose sizes were checked when it was read. No sum of what a
/// file may claim wraps (modelfile/model_limits.h).

/// Whether the engine computes such a decoder. Source: src/engine/decoder/decoder_tensors.cpp,
/// opt_family.cpp.
bool is_cpu_decoder(const DecoderSpec& spec);

/// Of one unit.
struct CpuDecoderWeights {
  std::uint64_t panels = 0;  // matrices packed in panels of 16 outputs; counted by the engine
  std::uint64_t biases = 0;  // of these, padded to whole panels; counted by the engine
  std::uint64_t norms = 0;   // weight and bias of each norm; plain vectors
  std::uint64_t tables = 0;  // embeddings, read in the mapped file: resident where they are read

  std::uint64_t counted() const { return panels + biases; }
  std::uint64_t total() const { return panels + biases + norms + tables; }
};

/// A matrix [out, in] is packed in
///
///   fp32   up16(out) in 4               Q4_0   up16(out) in / 32 x 18
///   bf16   up16(out) up2(in) 2          Q4_1   up16(out) in / 32 x 20
///   int8   up16(out) (up64(in) + 4 for   Q8_0   up16(out) in / 32 x 34
///          each 256 of them or fewer)
///
/// and a bias in up16(out) 4. A tied head is packed too, beside the table. A norm of n elements is
/// 8 n: those without a bias have zeros.
///
/// model: with a decoder; unit: of it. nullopt: Own, and a matrix whose type is not multiplied in
/// its own bits. Source: src/engine/ops/panel_weight.cpp, bytes_per_panel and make_bias;
/// src/engine/decoder/family_blocks.cpp, read_norm.
std::optional<CpuDecoderWeights> cpu_decoder_weights(const ModelDescription& model,
                                                     const ModelUnit& unit,
                                                     DecoderPrecision precision);

/// How a worker runs it.
struct CpuDecoderRun {
  DecoderPrecision precision = DecoderPrecision::Own;
  std::uint64_t step_tokens = 512;  // R: of a step in all. wire/generation_messages.h, LoadDecoder
  std::uint64_t logits_rows = 64;   // of a step: one for each sequence and each id that is scored.
                                    // src/worker/decoder_lane.cpp, load_decoder
  std::uint64_t threads = 1;
  std::uint64_t context = 1;  // T: tokens of the longest sequence
  /// The longest sequence is a prompt in steps of so many, and `scratch` exact; 0: any sequences,
  /// and `scratch` is the most that they can leave.
  std::uint64_t chunk_tokens = 0;
  /// Rows that share a pass over keys and values: 6 of AVX-512 and AVX2, 3 of the portable kernels.
  /// src/engine/ops/simd_*.h, kRowsMax.
  std::uint64_t attention_rows = 6;
};

/// What a worker has for its steps beside weights and cache.
struct CpuDecoderStep {
  std::uint64_t pass = 0;            // states and rows of a step; from the load on
  std::uint64_t scratch = 0;         // of attention, of all threads
  std::uint64_t scratch_growth = 0;  // for a moment: one thread's outgrown scratch
  std::uint64_t logits = 0;          // the worker's own; not counted by the engine
  std::uint64_t sampling = 0;        // a token in each thread; not counted by the engine

  std::uint64_t counted() const { return pass + scratch; }
  std::uint64_t counted_peak() const { return counted() + scratch_growth; }
  std::uint64_t total() const { return counted_peak() + logits + sampling; }
};

/// With h hidden, q = heads x head size, k = heads of keys x head size, f feed-forward, V
/// vocabulary and p the pairs of a head that are turned (0 without rotation):
///
///   pass     R 4 (h + (q + 2 k) + 2 p), and R 4 h where parts have a norm behind them
///            + rows(R, h), twice where the parts run side by side
///            + rows(R, q) + rows(R, f) + rows(logits_rows, h) + threads x room
///            + threads x row room
///   rows     (n, s), in each form that a product of theirs reads: float32 4 n s, of q also where
///            heads are not whole blocks (of 32; in int8 of 64); bf16 2 n up2(s); blocks
///            n up32(s) / 32 x (32 + 16): quants, scale, sums; int8 n up64(s) / 64 x (64 + 8)
///   room     of a piece of the feed-forward part's first product: min(R, 128) x 80 x 4, and as
///            much again where it is gated
///   row room max(h, 24 x head size) 4: a normed row, or what attention gives of 24 rows
///   scratch  threads x attention_rows x P x 4; where up16(positions of the longest sequence)
///            outgrows P, P becomes one and a half of that
///   logits   logits_rows V 4
///   sampling min(threads, logits_rows) times 8 V for the candidates, 4 V for the ids among which
///            they are found, and 4 V for the logits before they are changed
///
/// model: with a decoder. Source: src/engine/decoder/decoder_pass.cpp (constructor and
/// cut_attention), gated_product.cpp, row_forms.cpp; src/worker/generation.cpp;
/// src/engine/sampling/sampler.cpp (Candidate, RawLogprobs).
CpuDecoderStep cpu_decoder_step(const ModelDescription& model, const CpuDecoderRun& run);

/// Keys and values of so many blocks of 16 positions, and 16 elements that kernels read ahead, of
/// e = 4 (fp32), 2 (fp16) or 1 (int8):
///
///   bytes = blocks x 2 (keys and values) x layers x kv_heads x 16 x kv_vector_bytes + 16 e
///
/// A sliding window's layer keeps every position. Source: src/engine/decoder/kv_pool.cpp.
std::uint64_t cpu_decoder_cache(const DecoderSpec& spec, KvCacheDtype kept, std::uint64_t blocks);

/// Bytes of an element of the cache where nothing else is asked for: float32 in fp32, float16 else.
constexpr std::uint32_t cpu_decoder_cache_element(DecoderPrecision precision) {
  return precision == DecoderPrecision::Fp32 ? 4 : 2;
}

}  // namespace muster
