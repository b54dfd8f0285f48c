// The order of answers: what an earlier run measured, a measurement now, and where there is none
// the rule that was before measurements. What a verdict is kept by is read without the weights, so
// that a start with a kept verdict reads them once, when they are loaded.

#include "jobs/decoder_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "chat/decoder_text.h"
#include "jobs/precision_choice.h"
#include "modelfile/decoder_hash.h"
#include "modelfile/model_description.h"

namespace muster {
namespace {

// Ids of texts that precisions are compared on: enough of them that no single position decides, and
// few beside what loading takes.
constexpr std::size_t kIdsMost = 192;
constexpr std::size_t kIdsLeast = 32;
constexpr std::uint32_t kIdsOfText = 32;
constexpr std::size_t kIdsOfTextLeast = 12;  // shorter ones say little of what follows
constexpr std::uint64_t kReferenceBytes = std::uint64_t{64} << 20;

// The line of what a processor can do: "flags" (x86), "Features" (Arm); empty where there is none.
// Source: Linux, arch/x86/kernel/cpu/proc.c and arch/arm64/kernel/cpuinfo.c.
std::string cpu_flags() {
  const auto text = read_file("/proc/cpuinfo");
  if (!text) return {};
  for (const std::string_view name : {"\nflags", "\nFeatures"}) {
    const auto begin = text->find(name);
    if (begin != std::string::npos)
      return text->substr(begin + 1, text->find('\n', begin + 1) - begin - 1);
  }
  return {};
}

std::size_t ids_most(std::uint32_t vocab_size) {
  const auto of_vocabulary = kReferenceBytes / (std::uint64_t{4} * std::max(1U, vocab_size));
  return std::clamp<std::size_t>(of_vocabulary, kIdsLeast, kIdsMost);
}

// The beginnings of shipped texts that are spread over all kinds of them.
void add_texts(const DecoderSpec& spec, const Tokenizer& tokenizer, ProbeDecoder& probe) {
  const auto scratch = tokenizer.make_scratch();
  const auto length_most = std::min<std::size_t>(kIdsOfText, spec.length_max);
  std::vector<std::vector<TokenId>> texts;
  for (const auto text : precision_texts()) {
    std::vector<TokenId> ids;
    (void)tokenizer.encode(text, kIdsOfText + tokenizer.special_token_count(), *scratch, ids);
    ids.resize(std::min(ids.size(), length_most));
    const bool is_known =
        std::all_of(ids.begin(), ids.end(), [&](TokenId id) { return id < spec.vocab_size; });
    if (is_known && ids.size() >= kIdsOfTextLeast) texts.push_back(std::move(ids));
  }
  const auto count = std::max<std::size_t>(1, ids_most(spec.vocab_size) / kIdsOfText);
  const auto stride = std::max<std::size_t>(1, texts.size() / count);
  for (std::size_t i = 0; i < texts.size() && probe.lengths.size() < count; i += stride) {
    probe.lengths.push_back(static_cast<std::uint32_t>(texts[i].size()));
    probe.ids.insert(probe.ids.end(), texts[i].begin(), texts[i].end());
  }
}

// Errors: those of the tokenizer's files; Unsupported for one that has no ids for these texts.
Result<ProbeDecoder> probe_of(const DecoderPrecisionQuestion& question, const DecoderSpec& spec,
                              const DecoderTrial& trial) {
  ProbeDecoder probe{.source = std::filesystem::absolute(question.source).string(),
                     .precisions = trial.precisions,
                     .measures_divergence = trial.measures_divergence,
                     .layers_most = trial.layers_most,
                     .cpus = question.device.cpus};
  const auto text = MUSTER_TRY(load_decoder_text(question.source));
  add_texts(spec, *text.tokenizer, probe);
  if (!probe.lengths.empty()) return probe;
  return Error{ErrorKind::Unsupported, "the model has no ids for the texts it is measured on"};
}

std::uint32_t thread_count(const Device& device) {
  return std::max(1U, static_cast<std::uint32_t>(device.cpus.size()));
}

/// Where a measurement tells which precision is taken.
struct Comparison {
  ModelDescription model;
  DecoderTrial trial;
};

// The choice itself where there is nothing to compare.
std::variant<DecoderPrecisionChoice, Comparison> comparison_of(
    const DecoderPrecisionQuestion& question) {
  if (runs_as_gpu(question.device.kind)) {
    return DecoderPrecisionChoice{.precision = DecoderPrecision::Bf16, .reason = {}};
  }
  auto model = describe_model(question.source);
  // A folder without weights, or one that cannot be read, has nothing to measure.
  if (!model || model->weight_source == WeightSource::Config) return DecoderPrecisionChoice{};
  auto trial = plan_decoder_trial(*model, thread_count(question.device), question.memory_bytes);
  if (trial.is_needed()) return Comparison{.model = *std::move(model), .trial = std::move(trial)};
  return DecoderPrecisionChoice{.precision = trial.precisions.front(), .reason = trial.why_alone};
}

Result<DecoderVerdictKey> key_of(const DecoderPrecisionQuestion& question,
                                 const DecoderTrial& trial) {
  auto hash = MUSTER_TRY(decoder_sample_hash(question.source));
  return DecoderVerdictKey{.model_hash = std::move(hash),
                           .processor = question.device.model + " " + hash_hex(cpu_flags()),
                           .build = question.build,
                           .threads = thread_count(question.device),
                           .trial = trial};
}

std::optional<Result<DecoderVerdict>> kept_verdict(const DecoderPrecisionQuestion& question,
                                                   const DecoderVerdictKey& key) {
  if (question.cache_folder.empty()) return std::nullopt;
  return read_cached_decoder_verdict(question.cache_folder, key);
}

Result<DecoderVerdict> measured_verdict(const DecoderPrecisionQuestion& question,
                                        const Comparison& comparison, const MeasureDecoder& measure,
                                        const std::function<void(const std::string&)>& on_notice) {
  const auto probe = MUSTER_TRY(probe_of(question, *comparison.model.decoder, comparison.trial));
  on_notice(
      "measuring which precision is fastest here (once for this model, processor and number of "
      "cores)");
  return measure(probe);
}

void keep(const DecoderPrecisionQuestion& question, const DecoderVerdictKey& key,
          const Result<DecoderVerdict>& verdict,
          const std::function<void(const std::string&)>& on_notice) {
  const bool is_final = verdict ? is_complete(key.trial, *verdict)
                                : verdict.error().kind == ErrorKind::DeadlineExceeded;
  if (!is_final || question.cache_folder.empty()) return;
  const auto kept = write_cached_decoder_verdict(question.cache_folder, key, verdict);
  if (!kept) on_notice(fmt::format("the measurement cannot be kept: {}", kept.error().message));
}

// Of an error that is no end: what is the smallest.
DecoderPrecisionChoice choice_of(const DecoderTrial& trial, const Result<DecoderVerdict>& verdict) {
  if (verdict) return choose_decoder_precision(trial, *verdict);
  return {.precision = trial.precisions.back(),
          .reason = fmt::format("not measured: {}", verdict.error().message)};
}

}  // namespace

std::optional<DecoderPrecisionChoice> known_decoder_precision(
    const DecoderPrecisionQuestion& question) {
  const auto found = comparison_of(question);
  if (const auto* const choice = std::get_if<DecoderPrecisionChoice>(&found)) return *choice;
  const auto& trial = std::get<Comparison>(found).trial;
  const auto key = key_of(question, trial);
  if (!key) return choice_of(trial, key.error());
  const auto kept = kept_verdict(question, *key);
  if (!kept) return std::nullopt;
  return choice_of(trial, *kept);
}

Result<DecoderPrecisionChoice> settle_decoder_precision(
    const DecoderPrecisionQuestion& question, const MeasureDecoder& measure,
    const std::function<void(const std::string&)>& on_notice) {
  const auto found = comparison_of(question);
  if (const auto* const choice = std::get_if<DecoderPrecisionChoice>(&found)) return *choice;
  const auto& comparison = std::get<Comparison>(found);
  const auto& trial = comparison.trial;
  const auto key = key_of(question, trial);
  if (!key) return choice_of(trial, key.error());
  if (const auto kept = kept_verdict(question, *key)) return choice_of(trial, *kept);
  const auto verdict = measured_verdict(question, comparison, measure, on_notice);
  if (!verdict && verdict.error().kind == ErrorKind::Cancelled) return verdict.error();
  auto choice = choice_of(trial, verdict);
  if (question.is_disturbed && question.is_disturbed()) {
    choice.reason += " (another model was loaded meanwhile: the next start measures again)";
    return choice;
  }
  keep(question, *key, verdict, on_notice);
  return choice;
}

}  // namespace muster
