// `--precision auto` for decoders on a CPU: what is compared, by which rule, and where the verdict
// is kept. What fits is told by the formulas of a plan before anything is loaded, since a worker
// that is too large would be killed, and perhaps others with it.

#include "jobs/decoder_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"
#include "base/hash.h"
#include "spec/cpu_decoder_memory.h"

namespace muster {
namespace {

using nlohmann::json;

constexpr double kDivergenceMost = 0.01;
constexpr double kSpeedGain = 1.05;
constexpr std::uint64_t kWholeBytes = std::uint64_t{2} << 30;
// Of a measurement: logits that others are compared with (jobs/decoder_precision.cpp bounds them).
constexpr std::uint64_t kReferenceBytes = std::uint64_t{64} << 20;
// Attention's scratch grows with it, by a few bytes a token.
constexpr std::uint64_t kContext = 2048;
// In the place of measures.
constexpr const char* kTooLong = "took_too_long";

/// What a worker takes for the weights in one precision.
struct WeightBytes {
  std::uint64_t layers = 0;
  std::uint64_t others = 0;

  std::uint64_t total() const { return layers + others; }
};

// nullopt: the engine does not compute the model so.
std::optional<WeightBytes> weight_bytes(const ModelDescription& model, DecoderPrecision precision) {
  WeightBytes sum;
  for (const auto& unit : model.units) {
    const auto weights = cpu_decoder_weights(model, unit, precision);
    if (!weights) return std::nullopt;
    (unit.kind == UnitKind::Block ? sum.layers : sum.others) += weights->total();
  }
  return sum;
}

/// A precision that the engine has for the model, and what its worker takes beside the cache.
struct Candidate {
  DecoderPrecision precision = DecoderPrecision::Fp32;
  WeightBytes weights;
  std::uint64_t worker_bytes = 0;
};

std::vector<Candidate> candidates_of(const ModelDescription& model, std::uint32_t threads) {
  std::vector<Candidate> candidates;
  // The bits of a folder are those of bf16 or fp32.
  const bool has_own = model.decoder->naming == TensorNaming::Gguf;
  for (const auto precision :
       {DecoderPrecision::Fp32, DecoderPrecision::Bf16, DecoderPrecision::Own}) {
    if (precision == DecoderPrecision::Own && !has_own) continue;
    const auto weights = weight_bytes(model, precision);
    if (!weights) continue;
    const CpuDecoderRun run{.precision = precision, .threads = threads, .context = kContext};
    candidates.push_back({.precision = precision,
                          .weights = *weights,
                          .worker_bytes = weights->total() + cpu_decoder_step(model, run).total()});
  }
  return candidates;
}

// As many as fit into the bound with what is no layer; one at least.
std::uint32_t sampled_layers(const WeightBytes& weights, std::uint32_t layer_count) {
  const auto of_layer = std::max<std::uint64_t>(1, weights.layers / std::max(1U, layer_count));
  const auto left = kWholeBytes > weights.others ? kWholeBytes - weights.others : 0;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(left / of_layer, 1, layer_count));
}

std::string text_of(const DecoderMeasure& measure, const DecoderTrial& trial) {
  auto text = fmt::format("{} {:.1f} tokens/s", decoder_precision_name(measure.precision),
                          measure.tokens_per_second);
  if (trial.measures_divergence && measure.precision != DecoderPrecision::Fp32) {
    text += fmt::format(" with a mean KL to fp32 of {:.5f}", measure.divergence.value_or(0));
  }
  return text;
}

// The tokens of a second are those of the layers that were computed, and say nothing of the model.
std::string text_of_sample(const DecoderTrial& trial, const DecoderVerdict& verdict) {
  const auto& first = verdict.measures.front();
  std::vector<std::string> others;
  for (const auto& measure : verdict.measures) {
    if (&measure == &first) continue;
    others.push_back(fmt::format("{} is {:.2f}x {}", decoder_precision_name(measure.precision),
                                 measure.tokens_per_second / first.tokens_per_second,
                                 decoder_precision_name(first.precision)));
  }
  if (others.empty()) others.emplace_back(decoder_precision_name(first.precision));
  return fmt::format(
      "measured over {} of {} layers, as it is too large to be compared with fp32: {}",
      trial.layers_most, trial.layer_count, fmt::join(others, "; "));
}

std::string reason_of(const DecoderTrial& trial, const DecoderVerdict& verdict) {
  if (trial.layers_most > 0) return text_of_sample(trial, verdict);
  std::vector<std::string> all;
  for (const auto& measure : verdict.measures) all.push_back(text_of(measure, trial));
  auto text = fmt::format("measured: {}", fmt::join(all, "; "));
  if (!trial.measures_divergence) text += "; fp32 does not fit into memory to compare with it";
  return text;
}

json json_of(const DecoderVerdictKey& key) {
  json precisions = json::array();
  for (const auto precision : key.trial.precisions) {
    precisions.push_back(decoder_precision_name(precision));
  }
  return {{"model_hash", key.model_hash},
          {"processor", key.processor},
          {"build", key.build},
          {"threads", key.threads},
          {"precisions", std::move(precisions)},
          {"measures_divergence", key.trial.measures_divergence},
          {"layers", key.trial.layers_most}};
}

json json_of(const DecoderVerdict& verdict) {
  auto measures = json::array();
  for (const auto& measure : verdict.measures) {
    json entry{{"precision", decoder_precision_name(measure.precision)},
               {"tokens_per_second", measure.tokens_per_second}};
    if (measure.divergence) entry["divergence"] = *measure.divergence;
    measures.push_back(std::move(entry));
  }
  return measures;
}

// A hash of all that the verdict depends on is its name.
std::filesystem::path verdict_path(const std::filesystem::path& cache_folder,
                                   const DecoderVerdictKey& key) {
  return cache_folder / "verdicts" / (hash_hex(json_of(key).dump()) + ".json");
}

std::optional<double> number_of(const json& entry, const char* name) {
  if (!entry.contains(name) || !entry[name].is_number()) return std::nullopt;
  const double value = entry[name].get<double>();
  return std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<DecoderMeasure> read_measure(const json& entry, bool has_divergence) {
  if (!entry.is_object() || !entry.contains("precision") || !entry["precision"].is_string()) {
    return std::nullopt;
  }
  const auto precision = parse_decoder_precision(entry["precision"].get<std::string>());
  const auto speed = number_of(entry, "tokens_per_second");
  const auto divergence = number_of(entry, "divergence");
  if (!precision || !speed || divergence.has_value() != has_divergence) return std::nullopt;
  return DecoderMeasure{
      .precision = *precision, .tokens_per_second = *speed, .divergence = divergence};
}

}  // namespace

DecoderTrial plan_decoder_trial(const ModelDescription& model, std::uint32_t threads,
                                std::optional<std::uint64_t> memory_bytes) {
  DecoderTrial trial{.precisions = {DecoderPrecision::Own}};
  const bool is_known = model.decoder && is_cpu_decoder(*model.decoder);
  const auto candidates = is_known ? candidates_of(model, threads) : std::vector<Candidate>();
  if (candidates.empty()) {
    trial.why_alone = "not measured: what it takes in memory is not known";
    return trial;
  }
  trial.layer_count = model.decoder->layer_count;
  const auto fits = [memory_bytes](std::uint64_t bytes) {
    return !memory_bytes || bytes <= *memory_bytes;
  };
  const auto& fp32 = candidates.front();
  const bool is_whole = fp32.weights.total() <= kWholeBytes;
  trial.measures_divergence = is_whole && fits(fp32.worker_bytes + kReferenceBytes);
  if (!is_whole) trial.layers_most = sampled_layers(fp32.weights, trial.layer_count);
  trial.precisions.clear();
  bool lacks_room = false;
  for (const auto& candidate : candidates) {
    const bool is_fp32 = candidate.precision == DecoderPrecision::Fp32;
    if (is_fp32 && !trial.measures_divergence) continue;
    if (fits(candidate.worker_bytes)) {
      trial.precisions.push_back(candidate.precision);
    } else {
      lacks_room = true;
    }
  }
  if (trial.is_needed()) return trial;
  trial.why_alone = lacks_room ? "not measured: nothing else fits into the memory that is free"
                               : "not measured: too large to be compared with fp32 here";
  // That which takes least, so that whoever loads it says how much is missing.
  if (trial.precisions.empty()) trial.precisions = {candidates.back().precision};
  return trial;
}

// They are in the order of closeness.
DecoderPrecisionChoice choose_decoder_precision(const DecoderTrial& trial,
                                                const DecoderVerdict& verdict) {
  if (verdict.measures.empty()) {
    return {.precision = trial.precisions.back(),
            .reason = "not measured: the worker told nothing"};
  }
  const auto* best = &verdict.measures.front();
  for (const auto& measure : verdict.measures) {
    const bool is_close = measure.divergence.value_or(0) <= kDivergenceMost;
    const bool is_faster = measure.tokens_per_second >= kSpeedGain * best->tokens_per_second;
    if (is_close && is_faster) best = &measure;
  }
  return {.precision = best->precision, .reason = reason_of(trial, verdict)};
}

bool is_complete(const DecoderTrial& trial, const DecoderVerdict& verdict) {
  return std::equal(verdict.measures.begin(), verdict.measures.end(), trial.precisions.begin(),
                    trial.precisions.end(), [](const DecoderMeasure& measure, auto precision) {
                      return measure.precision == precision;
                    });
}

std::optional<Result<DecoderVerdict>> read_cached_decoder_verdict(
    const std::filesystem::path& cache_folder, const DecoderVerdictKey& key) {
  const auto text = read_regular_file(verdict_path(cache_folder, key), 64 * 1024);
  if (!text) return std::nullopt;
  const auto content = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object()) return std::nullopt;
  const bool has_word = content.contains(kTooLong) && content[kTooLong].is_boolean();
  if (has_word && content[kTooLong].get<bool>()) {
    return Error{ErrorKind::DeadlineExceeded, "an earlier measurement took too long"};
  }
  if (!content.contains("measures") || !content["measures"].is_array()) return std::nullopt;
  DecoderVerdict verdict;
  for (const auto& entry : content["measures"]) {
    const auto measure = read_measure(entry, key.trial.measures_divergence);
    if (!measure) return std::nullopt;
    verdict.measures.push_back(*measure);
  }
  if (!is_complete(key.trial, verdict)) return std::nullopt;
  return verdict;
}

Status write_cached_decoder_verdict(const std::filesystem::path& cache_folder,
                                    const DecoderVerdictKey& key,
                                    const Result<DecoderVerdict>& verdict) {
  const auto path = verdict_path(cache_folder, key);
  std::error_code failure;
  std::filesystem::create_directories(path.parent_path(), failure);
  if (failure) return system_error(path.parent_path().string(), "create", failure.value());
  auto content = json_of(key);
  if (verdict) {
    content["measures"] = json_of(*verdict);
  } else {
    content[kTooLong] = true;
  }
  return write_file_atomically(path, content.dump(2) + "\n");
}

}  // namespace muster
