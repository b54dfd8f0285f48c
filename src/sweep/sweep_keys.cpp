// The one list of what a benchmark's file may say. Parsing, the points of a sweep, their identity,
// the columns of the table and the page in docs/ follow from it. The names are those of
// ai_energy_benchmarks; what that program lacks (clients, rate, trials, …) has the name of the flag
// of `muster bench` that does the same.
#include "sweep/sweep_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr double kSamplesMost = 1'000'000;  // texts are kept as requests
constexpr double kBatchMost = 4'096;        // as --batch
constexpr double kClientsMost = 16'384;     // as --clients
constexpr double kTrialsMost = 1'000;       // as --trials
constexpr double kTokensMost = 1'000'000;   // as LengthLaw
constexpr double kSeedMost = 1e15;          // a JSON number holds it exactly

// Long because it is a table, and a table is read best in one piece.
std::vector<SweepKeyRow> make_keys() {
  using enum SweepValueKind;
  using K = SweepKey;
  return {
      {.key = K::Name, .path = "name", .column = "name", .usual = "benchmark"},
      {.key = K::OutputDir, .path = "output_dir", .column = ""},
      {.key = K::BackendType,
       .path = "backend.type",
       .column = "backend",
       .kind = Choice,
       .words =
           {{"muster", "muster"}, {"openai", "openai"}, {"pytorch", "muster"}, {"vllm", "openai"}}},
      {.key = K::Model, .path = "backend.model", .column = "model", .may_sweep = true},
      {.key = K::Url, .path = "backend.url", .column = "url", .backends = "o"},
      {.key = K::ApiKeyFile, .path = "backend.api_key_file", .column = "", .backends = "o"},
      {.key = K::Tokenizer, .path = "backend.tokenizer", .column = "tokenizer", .tasks = "gc"},
      {.key = K::Task,
       .path = "backend.task",
       .column = "task",
       .kind = Choice,
       .words = {{"text-generation", "generate"},
                 {"generate", "generate"},
                 {"completions", "completions"},
                 {"feature-extraction", "embed"},
                 {"sentence-similarity", "embed"},
                 {"embed", "embed"},
                 {"text-ranking", "rerank"},
                 {"rerank", "rerank"}}},
      {.key = K::Device,
       .path = "backend.device",
       .column = "",  // in device_ids
       .kind = Choice,
       .words = {{"cuda", "cuda"}, {"gpu", "cuda"}, {"cpu", "cpu"}}},
      {.key = K::DeviceIds,
       .path = "backend.device_ids",
       .column = "device_ids",
       .kind = Devices,
       .may_sweep = true},
      {.key = K::DeviceMap,
       .path = "backend.device_map",
       .column = "device_map",
       .kind = Choice,
       .backends = "m",
       .words = {{"auto", "auto"},
                 {"balanced", "balanced"},
                 {"balanced_low_0", "balanced_low_0"},
                 {"sequential", "sequential"}}},
      {.key = K::MaxMemory,
       .path = "backend.max_memory",
       .column = "max_memory",
       .kind = Memory,
       .backends = "m"},
      {.key = K::TorchDtype,
       .path = "backend.torch_dtype",
       .column = "torch_dtype",
       .kind = Choice,
       .may_sweep = true,
       .backends = "m",
       .usual = "auto",
       .words = {{"auto", "auto"},
                 {"float32", "fp32"},
                 {"bfloat16", "bf16"},
                 {"float16", "fp16"},
                 {"fp32", "fp32"},
                 {"bf16", "bf16"},
                 {"fp16", "fp16"},
                 {"half", "fp16"},
                 {"torch.float32", "fp32"},
                 {"torch.bfloat16", "bf16"},
                 {"torch.float16", "fp16"},
                 {"int8", "int8"}}},
      {.key = K::DatasetName, .path = "scenario.dataset_name", .column = "dataset_name"},
      {.key = K::TextColumn, .path = "scenario.text_column_name", .column = "text_column_name"},
      {.key = K::NumSamples,
       .path = "scenario.num_samples",
       .column = "num_samples",
       .kind = Count,
       .least = 1,
       .most = kSamplesMost},
      {.key = K::Truncation,
       .path = "scenario.truncation",
       .column = "truncation",
       .kind = Switch,
       .backends = "m",
       .tasks = "er"},
      {.key = K::Reasoning,
       .path = "scenario.reasoning",
       .column = "reasoning",
       .kind = Switch,
       .tasks = "g",
       .usual = "false"},
      {.key = K::ReasoningEffort,
       .path = "scenario.reasoning_params.reasoning_effort",
       .column = "reasoning_effort",
       .kind = Choice,
       .may_sweep = true,
       .backends = "o",
       .tasks = "g",
       .words = {{"none", "none"},
                 {"minimal", "minimal"},
                 {"low", "low"},
                 {"medium", "medium"},
                 {"high", "high"}}},
      {.key = K::EnableThinking,
       .path = "scenario.reasoning_params.enable_thinking",
       .column = "enable_thinking",
       .kind = Switch,
       .may_sweep = true,
       .backends = "o",
       .tasks = "g"},
      {.key = K::BatchSize,
       .path = "scenario.input_shapes.batch_size",
       .column = "batch_size",
       .kind = Count,
       .may_sweep = true,
       .usual = "1",
       .least = 1,
       .most = kBatchMost},
      {.key = K::SequenceLength,
       .path = "scenario.input_shapes.sequence_length",
       .column = "sequence_length",
       .kind = Count,
       .may_sweep = true,
       .least = 1,
       .most = kTokensMost},
      {.key = K::MaxNewTokens,
       .path = "scenario.generate_kwargs.max_new_tokens",
       .column = "max_new_tokens",
       .kind = Count,
       .may_sweep = true,
       .tasks = "gc",
       .usual = "100",
       .least = 1,
       .most = kTokensMost},
      {.key = K::MinNewTokens,
       .path = "scenario.generate_kwargs.min_new_tokens",
       .column = "min_new_tokens",
       .kind = Count,
       .tasks = "gc",
       .least = 0,
       .most = kTokensMost},
      {.key = K::DoSample,
       .path = "scenario.generate_kwargs.do_sample",
       .column = "do_sample",
       .kind = Switch,
       .tasks = "gc"},
      {.key = K::Temperature,
       .path = "scenario.generate_kwargs.temperature",
       .column = "temperature",
       .kind = Number,
       .tasks = "gc",
       .least = 0,
       .most = 2},
      {.key = K::TopP,
       .path = "scenario.generate_kwargs.top_p",
       .column = "top_p",
       .kind = Number,
       .tasks = "gc",
       .least = 0,
       .most = 1},
      {.key = K::TopK,
       .path = "scenario.generate_kwargs.top_k",
       .column = "top_k",
       .kind = Count,
       .tasks = "gc",
       .least = 0,
       .most = kTokensMost},
      {.key = K::MinP,
       .path = "scenario.generate_kwargs.min_p",
       .column = "min_p",
       .kind = Number,
       .tasks = "gc",
       .least = 0,
       .most = 1},
      {.key = K::RepetitionPenalty,
       .path = "scenario.generate_kwargs.repetition_penalty",
       .column = "repetition_penalty",
       .kind = Number,
       .tasks = "gc",
       .least = 1e-3,
       .most = 1e3},
      {.key = K::Clients,
       .path = "scenario.clients",
       .column = "clients",
       .kind = Count,
       .may_sweep = true,
       .tasks = "er",  // of replies, batch_size says how many at once
       .least = 1,
       .most = kClientsMost},
      {.key = K::Rate, .path = "scenario.rate", .column = "rate", .may_sweep = true},
      {.key = K::Arrivals,
       .path = "scenario.arrivals",
       .column = "arrivals",
       .kind = Choice,
       .words = {{"poisson", "poisson"}, {"constant", "constant"}}},
      {.key = K::Trials,
       .path = "scenario.trials",
       .column = "trials",
       .kind = Count,
       .usual = "1",
       .least = 1,
       .most = kTrialsMost},
      {.key = K::Cooldown, .path = "scenario.cooldown", .column = "cooldown"},
      {.key = K::WarmUp, .path = "scenario.warm_up", .column = "warm_up", .usual = "auto"},
      {.key = K::Timeout, .path = "scenario.timeout", .column = "timeout"},
      {.key = K::Seed,
       .path = "scenario.seed",
       .column = "seed",
       .kind = Count,
       .usual = "1",
       .least = 0,
       .most = kSeedMost},
      {.key = K::Slo, .path = "scenario.slo", .column = "slo"},
      {.key = K::MetricsEnabled,
       .path = "metrics.enabled",
       .column = "metrics_enabled",
       .kind = Switch,
       .usual = "true"},
      {.key = K::MetricsType,
       .path = "metrics.type",
       .column = "",  // there is one way of measuring, whatever it is called
       .kind = Choice,
       .usual = "counters",
       .words = {{"counters", "counters"}, {"codecarbon", "counters"}}},
      {.key = K::ProjectName, .path = "metrics.project_name", .column = "project_name"},
      {.key = K::MetricsOutputDir, .path = "metrics.output_dir", .column = ""},
      {.key = K::Country, .path = "metrics.country_iso_code", .column = "country_iso_code"},
      {.key = K::Region, .path = "metrics.region", .column = "region"},
      {.key = K::CarbonIntensity,
       .path = "metrics.carbon_intensity_g_per_kwh",
       .column = "carbon_intensity_g_per_kwh",
       .kind = Number,
       .least = 0,
       .most = 10'000},
      {.key = K::CarbonSource,
       .path = "metrics.carbon_intensity_source",
       .column = "carbon_intensity_source"},
      {.key = K::ReporterType,
       .path = "reporter.type",
       .column = "",
       .kind = Choice,
       .usual = "csv",
       .words = {{"csv", "csv"}}},
      {.key = K::OutputFile,
       .path = "reporter.output_file",
       .column = "",
       .usual = "./results/benchmark_results.csv"},
  };
}

struct OtherName {
  std::string_view theirs;
  std::string_view ours;
};

// What other programs, or an older version of the same, call a key.
constexpr std::array kOtherNames{
    OtherName{"backend.endpoint", "backend.url"},
    OtherName{"backend.base_url", "backend.url"},
    OtherName{"backend.dtype", "backend.torch_dtype"},
    OtherName{"backend.precision", "backend.torch_dtype"},
};

struct RefusedKey {
  std::string_view path;
  std::string_view sentence;
};

constexpr std::array kRefused{
    RefusedKey{"backend.trust_remote_code", "a model's own Python is never run"},
    RefusedKey{"backend.tp_plan",
               "tensor parallelism is planned (muster plan --tensor-parallel), not yet run"},
    RefusedKey{"backend.no_weights", "only real weights are measured"},
    RefusedKey{"power_limit", "a power limit is read (muster devices), never set"},
    RefusedKey{"backend.power_limit", "a power limit is read (muster devices), never set"},
};

std::string_view last_part(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

}  // namespace

std::span<const SweepKeyRow> sweep_keys() {
  static const std::vector<SweepKeyRow> rows = [] {
    auto made = make_keys();
    MUSTER_CHECK(made.size() == kSweepKeyCount);
    return made;
  }();
  return rows;
}

const SweepKeyRow& sweep_key(SweepKey key) {
  const auto& row = sweep_keys()[static_cast<std::size_t>(key)];
  MUSTER_CHECK(row.key == key);
  return row;
}

const SweepKeyRow* find_sweep_key(std::string_view path) {
  for (const auto& other : kOtherNames) {
    if (other.theirs == path) path = other.ours;
  }
  const auto rows = sweep_keys();
  const auto found = std::ranges::find(rows, path, &SweepKeyRow::path);
  return found == rows.end() ? nullptr : &*found;
}

bool is_sweep_section(std::string_view path) {
  const auto head = fmt::format("{}.", path);
  return std::ranges::any_of(sweep_keys(),
                             [&](const SweepKeyRow& row) { return row.path.starts_with(head); });
}

// First the same name elsewhere: a key in the wrong section is the likeliest slip.
std::optional<std::string> nearest_sweep_path(std::string_view path) {
  const auto last = last_part(path);
  std::vector<std::string> paths;
  std::vector<std::string> names;
  for (const auto& row : sweep_keys()) {
    if (last_part(row.path) == last) return std::string(row.path);
    paths.emplace_back(row.path);
    names.emplace_back(last_part(row.path));
  }
  if (const auto name = nearest_name(last, names)) {
    return paths[static_cast<std::size_t>(std::ranges::find(names, *name) - names.begin())];
  }
  return nearest_name(path, paths);
}

std::optional<std::string_view> refused_sweep_key(std::string_view path) {
  const auto* const found = std::ranges::find(kRefused, path, &RefusedKey::path);
  if (found == kRefused.end()) return std::nullopt;
  return found->sentence;
}

}  // namespace muster
