#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "spec/generation.h"
#include "spec/serving.h"

namespace muster {

// What parent and worker say to each other about decoders; the types are those of MessageType.
// The parent says LoadDecoder, answered by DecoderReady or LoadFailed; then Generate for as many
// sequences as it likes, each under a frame id of its own; the worker sends Tokens after each of
// its steps and for each sequence in the end Finished, or Failed where it could not be computed. A
// sequence that was cancelled is answered by a Cancel of its id, behind what was on its way. Before
// a step that computes more than a token of each sequence the worker says StepBegun; what its cache
// holds it says by CacheUse. Instead of all that it may be asked to ProbeDecoder, answered by
// DecoderVerdict or Failed.
// Source: docs/formats/frames.md.

/// Parent: load this decoder beside what is loaded, and be ready to generate with it.
struct LoadDecoder {
  ModelId model_id = 0;     // never used before in this worker
  std::string source = {};  // a GGUF file or a folder
  DecoderPrecision precision = DecoderPrecision::Fp32;
  KvCacheDtype kv_cache_dtype = KvCacheDtype::Auto;
  std::vector<std::uint32_t> cpus = {};   // a thread each; empty: one, anywhere
  std::uint64_t cache_bytes = 0;          // for keys and values
  std::uint32_t step_tokens_most = 512;   // that a step computes
  std::uint32_t sequences_most = 32;      // that are in the cache at once
  bool has_prefix_cache = true;           // sequences begin behind what earlier ones have computed
  std::uint32_t drafted_tokens_most = 0;  // of a sequence in a step, beside its next one
};

/// Worker: loaded.
struct DecoderReady {
  ModelId model_id = 0;
  std::uint32_t vocab_size = 0;
  std::uint32_t length_max = 0;   // tokens of prompt and reply
  std::uint32_t block_count = 0;  // of the cache
  std::uint32_t thread_count = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t weights_bytes = 0;
  std::string decoder_class = {};  // what of machine and library can change a bit of a logit
};

/// Parent: continue these ids. The frame's id is the sequence's.
struct Generate {
  ModelId model_id = 0;
  std::vector<std::uint32_t> ids = {};       // the prompt, and behind it what is known of the reply
  std::uint32_t reply_count = 0;             // of the ids; another worker has chosen them before
  std::uint32_t token_limit = 0;             // further tokens at most; 0: it ends behind its prompt
  std::vector<std::uint32_t> stop_ids = {};  // each of them ends the reply
  std::uint64_t prefix_scope = 0;            // it shares keys and values within this alone
  /// Ids from this one on are told with their log-probabilities, before the reply begins; 0: none
  /// are, and the first id, which nothing is before, never is. Of a prompt without a reply alone.
  std::uint32_t score_from = 0;
  SamplingOptions sampling = {};  // with logprob_count where ids are scored
};

/// One token of one sequence: chosen, or of its prompt where those are asked for (`score_from`).
struct GeneratedToken {
  std::uint64_t sequence = 0;
  std::uint32_t token = 0;
  bool is_prompt = false;
  std::optional<TokenLogprobs> logprobs = {};  // where the sequence asks for them

  bool operator==(const GeneratedToken&) const = default;
};

/// A sequence that has got its place for the first time.
struct BegunSequence {
  std::uint64_t sequence = 0;
  std::uint32_t cached_count = 0;  // of its ids, from the first on: their keys were there already

  bool operator==(const BegunSequence&) const = default;
};

/// Worker: what a step has begun with and chosen; no tokens where it computed a part of a prompt
/// alone.
struct Tokens {
  std::vector<BegunSequence> begun = {};  // before any token of theirs
  std::uint32_t drafted_count = 0;        // tokens of drafts that it computed
  std::uint32_t accepted_count = 0;       // of these, the ones that were chosen
  std::vector<GeneratedToken> tokens = {};
};

/// Worker: the sequence of the frame's id has ended; its last token came before, unless it is one
/// of the stop_ids, which are never sent.
struct Finished {
  FinishReason reason = FinishReason::Stop;
};

/// Worker: it computes so many tokens now, of prompts or of sequences whose keys gave way to
/// others, beside the next ones of those that generate; its Tokens come when they are computed. A
/// step of one token of each sequence is not announced.
struct StepBegun {
  std::uint32_t token_count = 0;  // of all sequences together
};

/// Worker: what has changed of its cache of keys and values; told before the tokens and ends of the
/// step, or the answer to the cancellation, that have changed it.
struct CacheUse {
  std::uint32_t held_block_count = 0;  // that sequences hold; others may be kept for what they hold
  std::uint64_t preemption_count = 0;  // sequences that gave way to others, since it was loaded

  bool operator==(const CacheUse&) const = default;
};

/// Parent: measure this decoder in these precisions, one after another: no two are in memory at
/// once.
struct ProbeDecoder {
  std::string source = {};                        // a GGUF file or a folder
  std::vector<DecoderPrecision> precisions = {};  // at least one; the first must be there
  bool measures_divergence = false;               // of the others from the first, over the texts
  std::uint32_t layers_most = 0;            // from the first on; 0: all. Fewer tell speeds alone
  std::vector<std::uint32_t> cpus = {};     // a thread each; empty: one, anywhere
  std::vector<std::uint32_t> lengths = {};  // [texts], of at least one id
  std::vector<std::uint32_t> ids = {};      // [sum of lengths]
};

/// One precision as measured by a ProbeDecoder.
struct DecoderMeasure {
  DecoderPrecision precision = DecoderPrecision::Fp32;
  double tokens_per_second = 0;           // of one stream, by the median step
  std::optional<double> divergence = {};  // in the mean over positions, in nats

  bool operator==(const DecoderMeasure&) const = default;
};

/// Worker: the answer to ProbeDecoder.
struct DecoderVerdict {
  std::vector<DecoderMeasure> measures = {};  // in the order that was asked for

  bool operator==(const DecoderVerdict&) const = default;
};

std::vector<std::byte> encode(const LoadDecoder& message);
std::vector<std::byte> encode(const DecoderReady& message);
std::vector<std::byte> encode(const Generate& message);
std::vector<std::byte> encode(const Tokens& message);
std::vector<std::byte> encode(const Finished& message);
std::vector<std::byte> encode(const StepBegun& message);
std::vector<std::byte> encode(const CacheUse& message);
std::vector<std::byte> encode(const ProbeDecoder& message);
std::vector<std::byte> encode(const DecoderVerdict& message);

/// Errors of all: Corrupt for a payload that ends early or late or holds an unknown enumerator, a
/// sequence without ids, or with more of a reply than it has ids, one to be scored from beyond its
/// ids, behind a reply or without a count of log-probabilities, a log-probability above 0 or that
/// is no number, more of the likeliest than kLogprobsMost, a step without a token, a probe without
/// a precision or a text, with an empty text or lengths that do not sum to the ids, or a measure
/// that is no finite number or below 0.
Result<LoadDecoder> decode_load_decoder(std::span<const std::byte> payload);
Result<DecoderReady> decode_decoder_ready(std::span<const std::byte> payload);
Result<Generate> decode_generate(std::span<const std::byte> payload);
Result<Tokens> decode_tokens(std::span<const std::byte> payload);
Result<Finished> decode_finished(std::span<const std::byte> payload);
Result<StepBegun> decode_step_begun(std::span<const std::byte> payload);
Result<CacheUse> decode_cache_use(std::span<const std::byte> payload);
Result<ProbeDecoder> decode_probe_decoder(std::span<const std::byte> payload);
Result<DecoderVerdict> decode_decoder_verdict(std::span<const std::byte> payload);

}  // namespace muster
