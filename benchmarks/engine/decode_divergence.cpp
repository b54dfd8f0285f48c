// How far the next tokens of each precision are from fp32's, and those of fp32 with keys and values
// in 8 bits ("kv_int8"), in the mean over all positions of texts, in nats
// (engine/sampling/divergence.h). As JSON; a precision that the model does not have is left out.
//
//   decode_divergence MODEL IDS     IDS: a file with a text a line, as ids with spaces between them

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "engine/decoder/decoder.h"
#include "engine/sampling/divergence.h"
#include "wire/generation_messages.h"
#include "worker/decoder_loading.h"
#include "worker/decoder_probe.h"

namespace {

using muster::DecoderPrecision;
using muster::KvCacheDtype;

constexpr std::uint32_t kChunk = 32;                           // tokens that are computed at once
constexpr std::uint64_t kCacheBytes = std::uint64_t{1} << 30;  // more than a context takes

// Ids that the lines have, and how many each.
void read_texts(const char* path, muster::ProbeDecoder& probe) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::uint32_t count = 0;
    for (std::uint32_t id = 0; words >> id; ++count) probe.ids.push_back(id);
    if (count > 0) probe.lengths.push_back(count);
  }
}

/// A decoder in fp32 with room for one text, and the logits of its last step.
struct Subject {
  muster::LoadedDecoder loaded;
  std::vector<std::uint32_t> blocks;
  std::vector<float> logits;

  std::size_t vocab_size() const { return loaded.decoder->vocab_size(); }
};

muster::Result<Subject> load_subject(const std::string& source, KvCacheDtype dtype) {
  const muster::LoadDecoder load{.source = source,
                                 .precision = DecoderPrecision::Fp32,
                                 .kv_cache_dtype = dtype,
                                 .cache_bytes = kCacheBytes,
                                 .step_tokens_most = kChunk,
                                 .sequences_most = 1,
                                 .has_prefix_cache = false};
  Subject subject;
  subject.loaded = MUSTER_TRY(muster::load_decoder(load, muster::DeviceKind::Cpu));
  subject.blocks.resize(subject.loaded.steps.block_count);
  std::iota(subject.blocks.begin(), subject.blocks.end(), 0U);
  subject.logits.resize(kChunk * subject.vocab_size());
  return subject;
}

muster::Status step(Subject& subject, std::span<const std::uint32_t> tokens,
                    std::uint32_t position) {
  const auto count = static_cast<std::uint32_t>(tokens.size());
  const muster::engine::StepSequence next{
      .tokens = tokens, .position = position, .blocks = subject.blocks, .logit_count = count};
  const auto rows = std::span(subject.logits).first(count * subject.vocab_size());
  return subject.loaded.decoder->step({&next, 1}, rows);
}

// The cache alone differs. All texts lie in the same blocks, one after another.
muster::Result<double> divergence_of_cache(const muster::ProbeDecoder& probe, KvCacheDtype dtype) {
  auto plain = MUSTER_TRY(load_subject(probe.source, KvCacheDtype::Fp32));
  auto other = MUSTER_TRY(load_subject(probe.source, dtype));
  const std::size_t vocab = plain.vocab_size();
  double sum = 0;
  std::span<const std::uint32_t> rest = probe.ids;
  for (const auto length : probe.lengths) {
    for (std::uint32_t begin = 0; begin < length; begin += kChunk) {
      const auto tokens = rest.subspan(begin, std::min(kChunk, length - begin));
      MUSTER_TRY(step(plain, tokens, begin));
      MUSTER_TRY(step(other, tokens, begin));
      for (std::size_t at = 0; at < tokens.size() * vocab; at += vocab) {
        sum += muster::engine::divergence(std::span(plain.logits).subspan(at, vocab),
                                          std::span(other.logits).subspan(at, vocab));
      }
    }
    rest = rest.subspan(length);
  }
  return sum / static_cast<double>(probe.ids.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: decode_divergence MODEL IDS\n");
    return 2;
  }
  muster::ProbeDecoder probe;
  probe.source = argv[1];
  probe.precisions = {DecoderPrecision::Fp32, DecoderPrecision::Bf16, DecoderPrecision::Own,
                      DecoderPrecision::Int8};
  probe.measures_divergence = true;
  read_texts(argv[2], probe);
  if (probe.ids.empty()) {
    fmt::print(stderr, "{}: no ids\n", argv[2]);
    return 1;
  }
  const auto verdict = muster::measure_decoder(probe, muster::DeviceKind::Cpu);
  if (!verdict) {
    fmt::print(stderr, "{}\n", verdict.error().message);
    return 1;
  }
  const auto of_cache = divergence_of_cache(probe, KvCacheDtype::Int8);
  if (!of_cache) {
    fmt::print(stderr, "{}\n", of_cache.error().message);
    return 1;
  }
  fmt::print("{{\"positions\": {}", probe.ids.size());
  for (const auto& measure : verdict->measures) {
    fmt::print(", \"{}\": {:.9f}", muster::decoder_precision_name(measure.precision),
               measure.divergence.value_or(0));
  }
  fmt::print(", \"kv_int8\": {:.9f}}}\n", *of_cache);
  return 0;
}
