// What a precision costs and what it changes, on the model itself. Steps of one token are what a
// stream waits for; of these the median counts, since another program may take the cores for a
// moment. All texts lie in the same blocks of the cache, one after another.

#include "worker/decoder_probe.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/decoder/decoder.h"
#include "engine/decoder/kv_pool.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/sampling/divergence.h"
#include "modelfile/decoder_config.h"
#include "worker/decoder_loading.h"

namespace muster {
namespace {

constexpr std::uint32_t kChunk = 32;    // tokens of a text that are computed at once
constexpr std::size_t kWarmSteps = 2;   // the first ones meet cold caches and sleeping threads
constexpr std::size_t kStepsLeast = 5;  // odd, so that the median is one of them
constexpr std::size_t kStepsMost = 64;
constexpr std::chrono::milliseconds kStepsTime(300);

/// A decoder with room for one sequence.
struct Subject {
  LoadedDecoder loaded;
  std::vector<std::uint32_t> blocks;

  engine::Decoder& decoder() const { return *loaded.decoder; }
  std::size_t vocab_size() const { return decoder().vocab_size(); }
  std::size_t position_count() const {
    return std::min(blocks.size() * engine::kKvBlockTokens, decoder().length_max());
  }
};

// Room for the longest text, and for as many steps as there may be.
Result<Subject> load_subject(const ProbeDecoder& probe, DecoderPrecision precision,
                             DeviceKind device) {
  const auto spec = MUSTER_TRY(read_decoder_spec(probe.source));
  const std::size_t longest = *std::max_element(probe.lengths.begin(), probe.lengths.end());
  const std::size_t positions =
      std::min(std::max(longest, kWarmSteps + kStepsMost), engine::decoder_length_max(spec));
  const std::size_t block_count = (positions + engine::kKvBlockTokens - 1) / engine::kKvBlockTokens;
  const auto block_bytes = engine::kv_block_bytes(spec, kept_as(KvCacheDtype::Auto, precision));
  const LoadDecoder load{.source = probe.source,
                         .precision = precision,
                         .cpus = probe.cpus,
                         .cache_bytes = block_count * block_bytes,
                         .step_tokens_most = kChunk,
                         .sequences_most = 1,
                         .has_prefix_cache = false};
  Subject subject;
  subject.loaded = MUSTER_TRY(load_decoder(load, device, probe.layers_most));
  subject.blocks.resize(std::min<std::size_t>(block_count, subject.loaded.steps.block_count));
  std::iota(subject.blocks.begin(), subject.blocks.end(), 0U);
  return subject;
}

// `on_rows` gets the logits of all positions, in their order: each time some rows of them.
Status read_texts(const Subject& subject, const ProbeDecoder& probe,
                  const std::function<void(std::span<const float>)>& on_rows) {
  std::vector<float> logits(kChunk * subject.vocab_size());
  std::span<const std::uint32_t> rest = probe.ids;
  for (const auto length : probe.lengths) {
    for (std::uint32_t begin = 0; begin < length; begin += kChunk) {
      const auto count = std::min(kChunk, length - begin);
      const engine::StepSequence next{.tokens = rest.subspan(begin, count),
                                      .position = begin,
                                      .blocks = subject.blocks,
                                      .logit_count = count};
      const auto rows = std::span(logits).first(count * subject.vocab_size());
      MUSTER_TRY(subject.decoder().step({&next, 1}, rows));
      on_rows(rows);
    }
    rest = rest.subspan(length);
  }
  return Done{};
}

// In the mean; what is no number where one of them is none.
Result<double> mean_divergence(const Subject& subject, const ProbeDecoder& probe,
                               std::span<const float> reference) {
  const std::size_t vocab = subject.vocab_size();
  double sum = 0;
  std::span<const float> rest = reference;
  MUSTER_TRY(read_texts(subject, probe, [&](std::span<const float> rows) {
    for (std::size_t at = 0; at < rows.size(); at += vocab) {
      sum += engine::divergence(rest.subspan(at, vocab), rows.subspan(at, vocab));
    }
    rest = rest.subspan(rows.size());
  }));
  return sum / static_cast<double>(probe.ids.size());
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Which tokens they are has no part in how long a step takes.
Result<double> tokens_per_second(const Subject& subject, const ProbeDecoder& probe) {
  using Steady = std::chrono::steady_clock;
  std::vector<float> logits(subject.vocab_size());
  std::vector<double> seconds;
  const auto until = Steady::now() + kStepsTime;
  for (std::size_t i = 0; seconds.size() < kStepsMost; ++i) {
    const auto begin = Steady::now();
    if (begin >= until && seconds.size() >= kStepsLeast) break;
    const engine::StepSequence next{
        .tokens = std::span(probe.ids).subspan(i % probe.ids.size(), 1),
        .position = static_cast<std::uint32_t>(i % subject.position_count()),
        .blocks = subject.blocks,
        .logit_count = 1};
    MUSTER_TRY(subject.decoder().step({&next, 1}, logits));
    const std::chrono::duration<double> took = Steady::now() - begin;
    if (i >= kWarmSteps) seconds.push_back(took.count());
  }
  return 1 / std::max(median(std::move(seconds)), 1e-9);
}

/// The logits that others are compared with.
using Reference = std::vector<float>;

// Fills the reference where it is empty and one is wanted.
Result<DecoderMeasure> measure(const ProbeDecoder& probe, DecoderPrecision precision,
                               DeviceKind device, Reference& reference) {
  const auto subject = MUSTER_TRY(load_subject(probe, precision, device));
  DecoderMeasure result{.precision = precision};
  if (probe.measures_divergence && reference.empty()) {
    reference.reserve(probe.ids.size() * subject.vocab_size());
    MUSTER_TRY(read_texts(subject, probe, [&](std::span<const float> rows) {
      reference.insert(reference.end(), rows.begin(), rows.end());
    }));
    // Beside it nothing could be close, and the speed alone would take the slowest.
    const auto is_number = [](float logit) { return std::isfinite(logit); };
    if (!std::all_of(reference.begin(), reference.end(), is_number)) {
      return corrupt_error("the model's logits are not finite numbers");
    }
    result.divergence = 0;
  } else if (probe.measures_divergence) {
    result.divergence = MUSTER_TRY(mean_divergence(subject, probe, reference));
  }
  result.tokens_per_second = MUSTER_TRY(tokens_per_second(subject, probe));
  return result;
}

}  // namespace

Result<DecoderVerdict> measure_decoder(const ProbeDecoder& probe, DeviceKind device) {
  DecoderVerdict verdict;
  Reference reference;
  for (const auto precision : probe.precisions) {
    const auto measured = measure(probe, precision, device, reference);
    if (!measured && verdict.measures.empty()) return measured.error();
    if (!measured || !std::isfinite(measured->divergence.value_or(0))) continue;
    verdict.measures.push_back(*measured);
  }
  return verdict;
}

}  // namespace muster
