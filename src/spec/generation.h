#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// In which numbers a decoder's weights are kept and multiplied. Each is an equality class of its
/// own.
enum class DecoderPrecision : std::uint8_t {
  Fp32,  // everything float32
  Bf16,  // weights and the rows that meet them rounded to bfloat16, sums float32
  Own,   // weights in the file's own bits; blocks of Q4_0, Q4_1 and Q8_0 meet rows in blocks of 8
         // bits
  Int8,  // every weight in 8 bits, whatever its type in the file, after a Hadamard transform
};

/// "fp32", "bf16", "own", "int8".
std::string_view decoder_precision_name(DecoderPrecision precision);

/// The inverse of `decoder_precision_name`; nullopt for any other word.
std::optional<DecoderPrecision> parse_decoder_precision(std::string_view name);

/// In which numbers a decoder keeps the keys and values of its sequences. Beside a precision each
/// is an equality class of its own; Auto is that of what it stands for.
enum class KvCacheDtype : std::uint8_t {
  Auto,  // fp32 where the decoder computes in fp32; else 16 bits: fp16 on a CPU, bf16 on a GPU
  Fp32,
  Fp16,
  Int8,  // each head's vector of a position in 8 bits, with a scale of its own
};

/// "auto", "fp32", "fp16", "int8".
std::string_view kv_cache_dtype_name(KvCacheDtype dtype);

/// The inverse of `kv_cache_dtype_name`; nullopt for any other word.
std::optional<KvCacheDtype> parse_kv_cache_dtype(std::string_view name);

/// What is kept where `asked` is asked for, beside a precision: never Auto. Of Auto on a GPU Fp16
/// stands for bf16, which takes as much.
KvCacheDtype kept_as(KvCacheDtype asked, DecoderPrecision precision);

/// Bytes of one head's keys, or values, of one position, in what is kept:
///
///   fp32  4 size        fp16  2 size        int8  size + 4: a byte each, and a float32 scale
std::uint64_t kv_vector_bytes(KvCacheDtype kept, std::uint64_t size);

/// How the next token is chosen from a step's logits.
///
/// In this order: bias, the three penalties, temperature; then top_k, top_p and min_p each leave
/// out tokens by what the others have left, most likely first.
struct SamplingOptions {
  double temperature = 0;         // 0: the most likely token, and nothing below but bias and
                                  // penalties counts
  std::uint32_t top_k = 0;        // the most likely k; 0: all
  double top_p = 1;               // the fewest whose probabilities reach this sum
  double min_p = 0;               // those at least this share as likely as the most likely one
  double repetition_penalty = 1;  // of tokens seen so far, prompt included: logits above 0 are
                                  // divided by it, others multiplied
  double presence_penalty = 0;    // taken off once for every token of the reply so far
  double frequency_penalty = 0;   // taken off for each time it was chosen
  std::uint64_t seed = 0;
  /// Which of the replies to one request; each draws its own numbers, and 0 as if it were alone.
  std::uint32_t choice = 0;
  /// Log-probabilities are told with each token, and those of so many of the likeliest in its
  /// place; nullopt: none are.
  std::optional<std::uint32_t> logprob_count = std::nullopt;
  std::vector<std::pair<std::uint32_t, float>> logit_bias = {};

  bool operator==(const SamplingOptions&) const = default;
};

/// OpenAI's limit of `top_logprobs`. Source: API reference, "Create chat completion".
inline constexpr std::uint32_t kLogprobsMost = 20;

/// How likely a token was to the model, and which would have been the likeliest in its place.
///
/// Units: natural logarithms of the softmax of the model's own logits, before bias, penalties,
/// temperature and what top_k, top_p and min_p leave out: they tell what the model thinks, however
/// it is sampled, and two requests can be compared.
/// Source: vLLM, `logprobs_mode`, whose default is raw_logprobs.
struct TokenLogprobs {
  float chosen = 0;
  std::vector<std::pair<std::uint32_t, float>> top = {};  // tokens with theirs, the likeliest first

  bool operator==(const TokenLogprobs&) const = default;
};

/// Why a sequence ended.
enum class FinishReason : std::uint8_t {
  Stop,    // a token that ends a reply
  Length,  // as many tokens as asked for, or the model's context is full
};

/// "stop", "length".
std::string_view finish_reason_name(FinishReason reason);

}  // namespace muster
