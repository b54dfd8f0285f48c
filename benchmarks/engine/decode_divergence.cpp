// How far the next tokens of each precision are from fp32's, and those of fp32 with keys and values
// in 8 bits ("kv_int8"), over all positions of texts, in nats (engine/sampling/divergence.h): in
// the mean, and the sum of each text, from which an interval can be made. As JSON; a precision that
// the model does not have is left out.
//
//   decode_divergence MODEL IDS [TEXTS]     IDS: a file with a text a line, as ids with spaces
//                                           between them; TEXTS: so many of the first for kv_int8
//
// All decoders are in memory at once and read a text together, so that the logits of a few
// positions are all that is kept.

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/decoder/decoder.h"
#include "engine/sampling/divergence.h"
#include "wire/generation_messages.h"
#include "worker/decoder_loading.h"
#include "worker/pinning.h"

namespace {

using muster::DecoderPrecision;
using muster::KvCacheDtype;
using Ids = std::vector<std::uint32_t>;

constexpr std::uint32_t kChunk = 32;                           // tokens that are computed at once
constexpr std::uint64_t kCacheBytes = std::uint64_t{1} << 30;  // more than a context takes

std::vector<Ids> read_texts(const char* path) {
  std::vector<Ids> texts;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Ids ids;
    for (std::uint32_t id = 0; words >> id;) ids.push_back(id);
    if (!ids.empty()) texts.push_back(std::move(ids));
  }
  return texts;
}

// What this process may use; a thread each, with the same bits as one.
std::vector<std::uint32_t> allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<std::uint32_t> cpus;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

/// A decoder with room for one text, the logits of its last step, and how far each text was from
/// the reference in sum.
struct Subject {
  std::string name;
  std::size_t text_count = std::numeric_limits<std::size_t>::max();  // that it reads at most
  muster::LoadedDecoder loaded;
  Ids blocks;
  std::vector<float> logits;
  std::vector<double> sums = {};
};

muster::Result<Subject> load_subject(const std::string& source, DecoderPrecision precision,
                                     KvCacheDtype dtype) {
  const muster::LoadDecoder load{.source = source,
                                 .precision = precision,
                                 .kv_cache_dtype = dtype,
                                 .cpus = allowed_cpus(),
                                 .cache_bytes = kCacheBytes,
                                 .step_tokens_most = kChunk,
                                 .sequences_most = 1,
                                 .has_prefix_cache = false};
  Subject subject;
  subject.name = muster::decoder_precision_name(precision);
  subject.loaded = MUSTER_TRY(muster::load_decoder(load, muster::DeviceKind::Cpu));
  subject.blocks.resize(subject.loaded.steps.block_count);
  std::iota(subject.blocks.begin(), subject.blocks.end(), 0U);
  subject.logits.resize(kChunk * subject.loaded.decoder->vocab_size());
  return subject;
}

// The reference first.
muster::Result<std::vector<Subject>> load_all(const std::string& source, std::size_t cached_texts) {
  auto reference = MUSTER_TRY(load_subject(source, DecoderPrecision::Fp32, KvCacheDtype::Fp32));
  auto cached = MUSTER_TRY(load_subject(source, DecoderPrecision::Fp32, KvCacheDtype::Int8));
  cached.name = "kv_int8";
  cached.text_count = cached_texts;
  std::vector<Subject> subjects;
  subjects.push_back(std::move(reference));
  for (const auto precision :
       {DecoderPrecision::Bf16, DecoderPrecision::Own, DecoderPrecision::Int8}) {
    auto subject = load_subject(source, precision, KvCacheDtype::Auto);
    if (subject) subjects.push_back(std::move(*subject));
  }
  subjects.push_back(std::move(cached));
  return subjects;
}

muster::Status step(Subject& subject, std::span<const std::uint32_t> tokens,
                    std::uint32_t position) {
  const auto count = static_cast<std::uint32_t>(tokens.size());
  const muster::engine::StepSequence next{
      .tokens = tokens, .position = position, .blocks = subject.blocks, .logit_count = count};
  const auto rows = std::span(subject.logits).first(count * subject.loaded.decoder->vocab_size());
  return subject.loaded.decoder->step({&next, 1}, rows);
}

// All texts lie in the same blocks, one after another.
muster::Status read_text(std::vector<Subject>& subjects, std::size_t number, const Ids& text) {
  auto& reference = subjects.front();
  const std::size_t vocab = reference.loaded.decoder->vocab_size();
  std::vector<double> sums(subjects.size());
  for (std::size_t begin = 0; begin < text.size(); begin += kChunk) {
    const auto tokens =
        std::span(text).subspan(begin, std::min<std::size_t>(kChunk, text.size() - begin));
    const auto position = static_cast<std::uint32_t>(begin);
    MUSTER_TRY(step(reference, tokens, position));
    for (std::size_t i = 1; i < subjects.size(); ++i) {
      if (number >= subjects[i].text_count) continue;
      MUSTER_TRY(step(subjects[i], tokens, position));
      for (std::size_t at = 0; at < tokens.size() * vocab; at += vocab) {
        sums[i] += muster::engine::divergence(std::span(reference.logits).subspan(at, vocab),
                                              std::span(subjects[i].logits).subspan(at, vocab));
      }
    }
  }
  for (std::size_t i = 1; i < subjects.size(); ++i) {
    if (number < subjects[i].text_count) subjects[i].sums.push_back(sums[i]);
  }
  return muster::Done{};
}

std::size_t position_count(std::span<const Ids> texts) {
  return std::accumulate(texts.begin(), texts.end(), std::size_t{0},
                         [](std::size_t sum, const Ids& text) { return sum + text.size(); });
}

void print(std::span<const Subject> subjects, std::span<const Ids> texts) {
  std::vector<std::size_t> lengths;
  for (const auto& text : texts) lengths.push_back(text.size());
  std::string sums;
  fmt::print("{{\"positions\": {}, \"lengths\": [{}]", position_count(texts),
             fmt::join(lengths, ", "));
  for (const auto& subject : subjects.subspan(1)) {
    const double sum = std::accumulate(subject.sums.begin(), subject.sums.end(), 0.0);
    const auto read = position_count(texts.first(subject.sums.size()));
    fmt::print(", \"{}\": {:.9f}", subject.name, sum / static_cast<double>(read));
    sums += fmt::format("{}\"{}\": [{:.9f}]", sums.empty() ? "" : ", ", subject.name,
                        fmt::join(subject.sums, ", "));
  }
  fmt::print(", \"sums\": {{{}}}}}\n", sums);
}

muster::Status run(const std::string& source, std::span<const Ids> texts,
                   std::size_t cached_texts) {
  auto subjects = MUSTER_TRY(load_all(source, cached_texts));
  const auto cpus = allowed_cpus();
  if (!cpus.empty()) muster::pin_to(std::span(cpus).first(1));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    MUSTER_TRY(read_text(subjects, i, texts[i]));
  }
  print(subjects, texts);
  return muster::Done{};
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t cached_texts = std::numeric_limits<std::size_t>::max();
  const bool is_limited = argc == 4;
  if ((argc != 3 && !is_limited) ||
      (is_limited && (!(std::istringstream(argv[3]) >> cached_texts) || cached_texts == 0))) {
    fmt::print(stderr, "usage: decode_divergence MODEL IDS [TEXTS]\n");
    return 2;
  }
  const auto texts = read_texts(argv[2]);
  if (texts.empty()) {
    fmt::print(stderr, "{}: no ids\n", argv[2]);
    return 1;
  }
  const auto done = run(argv[1], texts, cached_texts);
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  return done ? 0 : 1;
}
