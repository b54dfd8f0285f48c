#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/model_weights.h"
#include "wire/generation_messages.h"

namespace muster {

/// The precision of a decoder and why.
struct DecoderPrecisionChoice {
  DecoderPrecision precision = DecoderPrecision::Own;
  std::string reason = {};  // "measured: fp32 31.0 tokens/s; own 112.4 tokens/s with a mean KL to
                            // fp32 of 0.00120"; empty: it was asked for, or there is no weight
};

/// Which precisions of a decoder are compared on a CPU, and over how much of it.
struct DecoderTrial {
  std::vector<DecoderPrecision> precisions = {};  // the closest to fp32 first; never empty
  std::string why_alone = {};                     // where there is one: why no other
  bool measures_divergence = false;               // the first is fp32, and the model is whole
  std::uint32_t layers_most = 0;                  // that are computed, from the first on; 0: all
  std::uint32_t layer_count = 0;                  // of the model

  bool is_needed() const { return precisions.size() > 1; }
};

/// Compared are fp32, bf16 and a GGUF file's own bits, as far as the engine has them for the model
/// and a worker fits into memory: never int8, which is taken by name alone.
///
/// A measurement's time grows with the model. So one with more than 2 GiB of weights in fp32 is
/// measured over its first layers and its head, of shapes as all others, without fp32, which reads
/// the most for each token; how close the others are to it is not measured then.
///
/// memory_bytes: what a worker may take; nullopt: not known. Threads: pure.
DecoderTrial plan_decoder_trial(const ModelDescription& model, std::uint32_t threads,
                                std::optional<std::uint64_t> memory_bytes);

/// The fastest precision whose mean divergence from fp32 is at most 0.01, as far as that was
/// measured; one that is less close must be at least 5 % faster than one that is closer, as below
/// that the measurement's noise decides.
///
/// Source of the limit: llama.cpp's table of Llama 3 8B (examples/perplexity/README.md, commit
/// 0b8d056), where Q8_0 has 0.0014, Q6_K 0.0057, Q5_K_M 0.0111 and Q5_1 0.0185: what a choice that
/// nobody has made may cost is less than what any quantisation to five bits costs there.
DecoderPrecisionChoice choose_decoder_precision(const DecoderTrial& trial,
                                                const DecoderVerdict& verdict);

/// What a verdict on a decoder depends on. In what keys and values are kept is not among it: each
/// precision is measured with the cache that is its own (worker/decoder_probe.h).
struct DecoderVerdictKey {
  std::string model_hash;  // decoder_sample_hash
  std::string processor;   // its name and what it can do
  std::string build;       // of this program and its worker
  std::uint32_t threads = 1;
  DecoderTrial trial;
};

/// Whether each precision of the trial was measured: a worker leaves out what it cannot load or
/// what gives no numbers. Such a verdict is one of the moment, or of a damaged file, and is not
/// kept.
bool is_complete(const DecoderTrial& trial, const DecoderVerdict& verdict);

/// The measurement that an earlier run has kept, or DeadlineExceeded where it took too long;
/// nullopt when there is none, it cannot be read or is not complete.
std::optional<Result<DecoderVerdict>> read_cached_decoder_verdict(
    const std::filesystem::path& cache_folder, const DecoderVerdictKey& key);

/// verdict: a measurement, or the error of one that took too long.
/// Errors: those of writing; a run goes on without the cache.
Status write_cached_decoder_verdict(const std::filesystem::path& cache_folder,
                                    const DecoderVerdictKey& key,
                                    const Result<DecoderVerdict>& verdict);

}  // namespace muster
