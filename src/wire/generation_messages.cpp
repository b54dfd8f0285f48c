// What parent and worker say about generation: each message's fields, in the order of its struct.
// Lists grow with what has arrived, whatever their counts claim. Beyond the form, a decoder refuses
// what a scheduler of steps cannot work with: no tokens or sequences in a step, or a sequence whose
// ids are all of its reply. Options of sampling are passed as they are: their ranges are not
// checked here. Source: docs/formats/frames.md.

#include "wire/generation_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "wire/bytes.h"

namespace muster {
namespace {

using Weights = std::vector<std::pair<std::uint32_t, float>>;

// Pairs of token and number: biases on the way in, the likeliest alternatives on the way out.
void write_weights(ByteWriter& writer, const Weights& weights) {
  writer.number(static_cast<std::uint32_t>(weights.size()));
  for (const auto& [token, weight] : weights) {
    writer.number(token);
    writer.number(weight);
  }
}

// Token numbers are not compared with a vocabulary, which this side of the wire does not know.
Result<Weights> read_weights(ByteReader& reader) {
  Weights weights;
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto token = MUSTER_TRY(reader.number<std::uint32_t>());
    weights.emplace_back(token, MUSTER_TRY(reader.number<float>()));
  }
  return weights;
}

// Yes or no, or whether something follows that may be left out: 0 or 1, so that what is read is
// written the same. A 2 here means that the reader has lost its place.
Result<bool> read_flag(ByteReader& reader) {
  const auto flag = MUSTER_TRY(reader.number<std::uint8_t>());
  if (flag > 1) return ByteReader::unknown_value("yes or no", flag);
  return flag == 1;
}

void write_sampling(ByteWriter& writer, const SamplingOptions& sampling) {
  writer.number(sampling.temperature);
  writer.number(sampling.top_k);
  writer.number(sampling.top_p);
  writer.number(sampling.min_p);
  writer.number(sampling.repetition_penalty);
  writer.number(sampling.presence_penalty);
  writer.number(sampling.frequency_penalty);
  writer.number(sampling.seed);
  writer.number(sampling.choice);
  writer.number(static_cast<std::uint8_t>(sampling.logprob_count ? 1 : 0));
  if (sampling.logprob_count) writer.number(*sampling.logprob_count);
  write_weights(writer, sampling.logit_bias);
}

// Probabilities travel as doubles, as they are computed with: a rounding here could change which
// token is drawn.
Result<SamplingOptions> read_sampling(ByteReader& reader) {
  SamplingOptions sampling;
  sampling.temperature = MUSTER_TRY(reader.number<double>());
  sampling.top_k = MUSTER_TRY(reader.number<std::uint32_t>());
  sampling.top_p = MUSTER_TRY(reader.number<double>());
  sampling.min_p = MUSTER_TRY(reader.number<double>());
  sampling.repetition_penalty = MUSTER_TRY(reader.number<double>());
  sampling.presence_penalty = MUSTER_TRY(reader.number<double>());
  sampling.frequency_penalty = MUSTER_TRY(reader.number<double>());
  sampling.seed = MUSTER_TRY(reader.number<std::uint64_t>());
  sampling.choice = MUSTER_TRY(reader.number<std::uint32_t>());
  if (MUSTER_TRY(read_flag(reader))) {
    sampling.logprob_count = MUSTER_TRY(reader.number<std::uint32_t>());
  }
  sampling.logit_bias = MUSTER_TRY(read_weights(reader));
  return sampling;
}

void write_logprobs(ByteWriter& writer, const std::optional<TokenLogprobs>& logprobs) {
  writer.number(static_cast<std::uint8_t>(logprobs ? 1 : 0));
  if (!logprobs) return;
  writer.number(logprobs->chosen);
  write_weights(writer, logprobs->top);
}

// False for what is no number, too. A client's JSON has no word for it, and a mean of such numbers
// would rank replies by chance.
bool is_logprob(float value) { return value <= 0; }

Result<std::optional<TokenLogprobs>> read_logprobs(ByteReader& reader) {
  if (!MUSTER_TRY(read_flag(reader))) return std::optional<TokenLogprobs>();
  TokenLogprobs logprobs;
  logprobs.chosen = MUSTER_TRY(reader.number<float>());
  logprobs.top = MUSTER_TRY(read_weights(reader));
  bool is_sound = is_logprob(logprobs.chosen) && logprobs.top.size() <= kLogprobsMost;
  for (const auto& [token, logprob] : logprobs.top) is_sound &= is_logprob(logprob);
  if (is_sound) return std::optional(std::move(logprobs));
  return Error{ErrorKind::Corrupt, "a token's log-probabilities are none, or too many"};
}

Result<DecoderPrecision> read_precision(ByteReader& reader) {
  return reader.enumerator(DecoderPrecision::Int8, "decoder precision");
}

// Infinite for distributions that share no token; then the two are not one model's.
bool is_measure(double value) { return std::isfinite(value) && value >= 0; }

Status check_probe(const ProbeDecoder& probe) {
  const auto& lengths = probe.lengths;
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  const bool is_sound = !probe.precisions.empty() && !lengths.empty() &&
                        std::find(lengths.begin(), lengths.end(), 0U) == lengths.end() &&
                        sum == probe.ids.size();
  if (is_sound) return Done{};
  return Error{ErrorKind::Corrupt,
               fmt::format("a probe of {} precisions on {} texts of {} ids, {} of which came",
                           probe.precisions.size(), lengths.size(), sum, probe.ids.size())};
}

}  // namespace

std::vector<std::byte> encode(const LoadDecoder& message) {
  ByteWriter writer;
  writer.number(message.model_id);
  writer.text(message.source);
  writer.number(message.precision);
  writer.number(message.kv_cache_dtype);
  writer.numbers<std::uint32_t>(message.cpus);
  writer.number(message.cache_bytes);
  writer.number(message.step_tokens_most);
  writer.number(message.sequences_most);
  writer.number(message.drafted_tokens_most);
  writer.number(static_cast<std::uint8_t>(message.has_prefix_cache));
  return writer.take();
}

// A step without room for a token or a sequence could never finish anything.
Result<LoadDecoder> decode_load_decoder(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  LoadDecoder message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  message.source = MUSTER_TRY(reader.text());
  message.precision = MUSTER_TRY(read_precision(reader));
  message.kv_cache_dtype =
      MUSTER_TRY(reader.enumerator(KvCacheDtype::Int8, "numbers of keys and values"));
  message.cpus = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.cache_bytes = MUSTER_TRY(reader.number<std::uint64_t>());
  message.step_tokens_most = MUSTER_TRY(reader.number<std::uint32_t>());
  message.sequences_most = MUSTER_TRY(reader.number<std::uint32_t>());
  message.drafted_tokens_most = MUSTER_TRY(reader.number<std::uint32_t>());
  message.has_prefix_cache = MUSTER_TRY(read_flag(reader));
  MUSTER_TRY(reader.end());
  if (message.step_tokens_most == 0 || message.sequences_most == 0) {
    return Error{ErrorKind::Corrupt, "a decoder without tokens or sequences in a step"};
  }
  return message;
}

std::vector<std::byte> encode(const DecoderReady& message) {
  ByteWriter writer;
  writer.number(message.model_id);
  writer.number(message.vocab_size);
  writer.number(message.length_max);
  writer.number(message.block_count);
  writer.number(message.thread_count);
  writer.number(message.block_bytes);
  writer.number(message.weights_bytes);
  writer.text(message.decoder_class);
  return writer.take();
}

Result<DecoderReady> decode_decoder_ready(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  DecoderReady message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  message.vocab_size = MUSTER_TRY(reader.number<std::uint32_t>());
  message.length_max = MUSTER_TRY(reader.number<std::uint32_t>());
  message.block_count = MUSTER_TRY(reader.number<std::uint32_t>());
  message.thread_count = MUSTER_TRY(reader.number<std::uint32_t>());
  message.block_bytes = MUSTER_TRY(reader.number<std::uint64_t>());
  message.weights_bytes = MUSTER_TRY(reader.number<std::uint64_t>());
  message.decoder_class = MUSTER_TRY(reader.text());
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const Generate& message) {
  ByteWriter writer;
  writer.number(message.model_id);
  writer.numbers<std::uint32_t>(message.ids);
  writer.number(message.reply_count);
  writer.number(message.token_limit);
  writer.numbers<std::uint32_t>(message.stop_ids);
  writer.number(message.prefix_scope);
  writer.number(message.score_from);
  write_sampling(writer, message.sampling);
  return writer.take();
}

// A sequence that was moved here brings the part of the reply that it has already, at its end.
Result<Generate> decode_generate(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Generate message;
  message.model_id = MUSTER_TRY(reader.number<ModelId>());
  message.ids = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.reply_count = MUSTER_TRY(reader.number<std::uint32_t>());
  message.token_limit = MUSTER_TRY(reader.number<std::uint32_t>());
  message.stop_ids = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.prefix_scope = MUSTER_TRY(reader.number<std::uint64_t>());
  message.score_from = MUSTER_TRY(reader.number<std::uint32_t>());
  message.sampling = MUSTER_TRY(read_sampling(reader));
  MUSTER_TRY(reader.end());
  if (message.ids.size() <= message.reply_count) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("a sequence has no prompt: {} ids, {} of them a reply's",
                             message.ids.size(), message.reply_count)};
  }
  const bool can_score = message.score_from < message.ids.size() && message.reply_count == 0 &&
                         message.sampling.logprob_count;
  if (message.score_from > 0 && !can_score) {
    return Error{ErrorKind::Corrupt, fmt::format("a sequence of {} ids is to be scored from {}",
                                                 message.ids.size(), message.score_from)};
  }
  return message;
}

// Tokens of one step and of all its sequences go in one message, or frames would cost more than
// they carry.
std::vector<std::byte> encode(const Tokens& message) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(message.begun.size()));
  for (const auto& begun : message.begun) {
    writer.number(begun.sequence);
    writer.number(begun.cached_count);
  }
  writer.number(message.drafted_count);
  writer.number(message.accepted_count);
  writer.number(static_cast<std::uint32_t>(message.tokens.size()));
  for (const auto& token : message.tokens) {
    writer.number(token.sequence);
    writer.number(token.token);
    writer.number(static_cast<std::uint8_t>(token.is_prompt));
    write_logprobs(writer, token.logprobs);
  }
  return writer.take();
}

// Which sequences are open is known to the parent alone, so unknown ones are not refused here.
Result<Tokens> decode_tokens(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Tokens message;
  const auto begun_count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < begun_count; ++i) {
    BegunSequence begun;
    begun.sequence = MUSTER_TRY(reader.number<std::uint64_t>());
    begun.cached_count = MUSTER_TRY(reader.number<std::uint32_t>());
    message.begun.push_back(begun);
  }
  message.drafted_count = MUSTER_TRY(reader.number<std::uint32_t>());
  message.accepted_count = MUSTER_TRY(reader.number<std::uint32_t>());
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    GeneratedToken token;
    token.sequence = MUSTER_TRY(reader.number<std::uint64_t>());
    token.token = MUSTER_TRY(reader.number<std::uint32_t>());
    token.is_prompt = MUSTER_TRY(read_flag(reader));
    token.logprobs = MUSTER_TRY(read_logprobs(reader));
    message.tokens.push_back(std::move(token));
  }
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const Finished& message) {
  ByteWriter writer;
  writer.number(message.reason);
  return writer.take();
}

Result<Finished> decode_finished(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  Finished message;
  message.reason = MUSTER_TRY(reader.enumerator(FinishReason::Length, "reason to end"));
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const StepBegun& message) {
  ByteWriter writer;
  writer.number(message.token_count);
  return writer.take();
}

Result<StepBegun> decode_step_begun(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  StepBegun message;
  message.token_count = MUSTER_TRY(reader.number<std::uint32_t>());
  MUSTER_TRY(reader.end());
  if (message.token_count == 0) return Error{ErrorKind::Corrupt, "a step without a token"};
  return message;
}

std::vector<std::byte> encode(const CacheUse& message) {
  ByteWriter writer;
  writer.number(message.held_block_count);
  writer.number(message.preemption_count);
  return writer.take();
}

Result<CacheUse> decode_cache_use(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  CacheUse message;
  message.held_block_count = MUSTER_TRY(reader.number<std::uint32_t>());
  message.preemption_count = MUSTER_TRY(reader.number<std::uint64_t>());
  MUSTER_TRY(reader.end());
  return message;
}

std::vector<std::byte> encode(const ProbeDecoder& message) {
  ByteWriter writer;
  writer.text(message.source);
  writer.numbers<DecoderPrecision>(message.precisions);
  writer.number(static_cast<std::uint8_t>(message.measures_divergence));
  writer.number(message.layers_most);
  writer.numbers<std::uint32_t>(message.cpus);
  writer.numbers<std::uint32_t>(message.lengths);
  writer.numbers<std::uint32_t>(message.ids);
  return writer.take();
}

Result<ProbeDecoder> decode_probe_decoder(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  ProbeDecoder message;
  message.source = MUSTER_TRY(reader.text());
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    message.precisions.push_back(MUSTER_TRY(read_precision(reader)));
  }
  message.measures_divergence = MUSTER_TRY(read_flag(reader));
  message.layers_most = MUSTER_TRY(reader.number<std::uint32_t>());
  message.cpus = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.lengths = MUSTER_TRY(reader.numbers<std::uint32_t>());
  message.ids = MUSTER_TRY(reader.numbers<std::uint32_t>());
  MUSTER_TRY(reader.end());
  MUSTER_TRY(check_probe(message));
  return message;
}

std::vector<std::byte> encode(const DecoderVerdict& message) {
  ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(message.measures.size()));
  for (const auto& measure : message.measures) {
    writer.number(measure.precision);
    writer.number(measure.tokens_per_second);
    writer.number(static_cast<std::uint8_t>(measure.divergence ? 1 : 0));
    if (measure.divergence) writer.number(*measure.divergence);
  }
  return writer.take();
}

// One without a measure is legal here, as of encoders; what to run then is the parent's decision.
Result<DecoderVerdict> decode_decoder_verdict(std::span<const std::byte> payload) {
  ByteReader reader(payload);
  DecoderVerdict message;
  const auto count = MUSTER_TRY(reader.number<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    DecoderMeasure measure;
    measure.precision = MUSTER_TRY(read_precision(reader));
    measure.tokens_per_second = MUSTER_TRY(reader.number<double>());
    if (MUSTER_TRY(read_flag(reader))) measure.divergence = MUSTER_TRY(reader.number<double>());
    if (!is_measure(measure.tokens_per_second) || !is_measure(measure.divergence.value_or(0))) {
      return Error{ErrorKind::Corrupt, "a measure of a decoder is no number"};
    }
    message.measures.push_back(measure);
  }
  MUSTER_TRY(reader.end());
  return message;
}

}  // namespace muster
