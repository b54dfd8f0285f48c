// `--precision auto`: the fastest precision that was measured to be exact enough, and fp32 unless
// another one gains enough. The verdict is kept by model, processor, engine and pooling, since each
// of them can change it. A kept verdict that cannot be read is no error: it is measured anew.

#include "jobs/precision_choice.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "jobs/precision_texts.inc"

namespace muster {
namespace {

using nlohmann::json;

// Source: the product's promise for `--precision auto`.
constexpr double kCosineMean = 0.9995;
constexpr double kCosineMin = 0.999;
constexpr double kSpeedGain = 1.05;

std::filesystem::path verdict_path(const std::filesystem::path& cache_folder,
                                   const VerdictKey& key) {
  const auto text =
      fmt::format("{}\n{}\n{}\n{}", key.model_hash, key.processor, key.engine_class, key.pooling);
  // A hash of all that the verdict depends on is its name: another processor or another build of
  // the engine finds none.
  return cache_folder / "verdicts" / (hash_hex(text) + ".json");
}

std::optional<PrecisionMeasure> read_measure(const json& entry) {
  if (!entry.is_object() || !entry.contains("precision") || !entry["precision"].is_string()) {
    return std::nullopt;
  }
  const auto precision = parse_precision(entry["precision"].get<std::string>());
  if (!precision) return std::nullopt;
  for (const char* name : {"tokens_per_second", "cosine_mean", "cosine_min"}) {
    if (!entry.contains(name) || !entry[name].is_number()) return std::nullopt;
  }
  return PrecisionMeasure{.precision = *precision,
                          .tokens_per_second = entry["tokens_per_second"].get<double>(),
                          .cosine_mean = entry["cosine_mean"].get<double>(),
                          .cosine_min = entry["cosine_min"].get<double>()};
}

}  // namespace

PrecisionChoice choose_precision(const ProbeVerdict& verdict) {
  const auto& fp32 = verdict.measures.front();
  const PrecisionMeasure* best = &fp32;
  std::string others;
  for (const auto& measure : verdict.measures) {
    if (&measure == &fp32) continue;
    const double gain = measure.tokens_per_second / fp32.tokens_per_second;
    others += fmt::format("; {} is {:.2f}x fp32 with cosine {:.5f} in the mean, {:.5f} at least",
                          precision_name(measure.precision), gain, measure.cosine_mean,
                          measure.cosine_min);
    const bool is_exact_enough =
        measure.cosine_mean >= kCosineMean && measure.cosine_min >= kCosineMin;
    if (is_exact_enough && gain >= kSpeedGain &&
        measure.tokens_per_second > best->tokens_per_second) {
      best = &measure;
    }
  }
  return {.precision = best->precision,
          .reason = fmt::format("measured{}",
                                others.empty() ? ": this device computes in fp32 alone" : others)};
}

std::optional<ProbeVerdict> read_cached_verdict(const std::filesystem::path& cache_folder,
                                                const VerdictKey& key) {
  const auto text = read_regular_file(verdict_path(cache_folder, key), 64 * 1024);
  if (!text) return std::nullopt;
  const auto content = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object() || !content.contains("measures") || !content["measures"].is_array()) {
    return std::nullopt;
  }
  ProbeVerdict verdict;
  for (const auto& entry : content["measures"]) {
    const auto measure = read_measure(entry);
    if (!measure) return std::nullopt;
    verdict.measures.push_back(*measure);
  }
  if (verdict.measures.empty() || verdict.measures.front().precision != Precision::Fp32)
    return std::nullopt;
  return verdict;
}

Status write_cached_verdict(const std::filesystem::path& cache_folder, const VerdictKey& key,
                            const ProbeVerdict& verdict) {
  const auto path = verdict_path(cache_folder, key);
  std::error_code failure;
  std::filesystem::create_directories(path.parent_path(), failure);
  if (failure) return system_error(path.parent_path().string(), "create", failure.value());
  json measures = json::array();
  for (const auto& measure : verdict.measures) {
    measures.push_back({{"precision", precision_name(measure.precision)},
                        {"tokens_per_second", measure.tokens_per_second},
                        {"cosine_mean", measure.cosine_mean},
                        {"cosine_min", measure.cosine_min}});
  }
  const json content = {{"model_hash", key.model_hash},
                        {"processor", key.processor},
                        {"engine_class", key.engine_class},
                        {"pooling", key.pooling},
                        {"measures", measures}};
  return write_file_atomically(path, content.dump(2) + "\n");
}

std::vector<std::string_view> precision_texts() {
  std::vector<std::string_view> texts;
  std::string_view rest = kPrecisionTexts;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    texts.push_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return texts;
}

}  // namespace muster
