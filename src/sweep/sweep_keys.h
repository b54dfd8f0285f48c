#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Every key of a file for `muster bench run`, in the order of the table.
enum class SweepKey : std::uint8_t {
  Name,
  OutputDir,
  BackendType,
  Model,
  Url,
  ApiKeyFile,
  Tokenizer,
  Task,
  Device,
  DeviceIds,
  DeviceMap,
  MaxMemory,
  TorchDtype,
  DatasetName,
  TextColumn,
  NumSamples,
  Truncation,
  Reasoning,
  ReasoningEffort,
  EnableThinking,
  BatchSize,
  SequenceLength,
  MaxNewTokens,
  MinNewTokens,
  DoSample,
  Temperature,
  TopP,
  TopK,
  MinP,
  RepetitionPenalty,
  Clients,
  Rate,
  Arrivals,
  Trials,
  Cooldown,
  WarmUp,
  Timeout,
  Seed,
  Slo,
  MetricsEnabled,
  MetricsType,
  ProjectName,
  MetricsOutputDir,
  Country,
  Region,
  CarbonIntensity,
  CarbonSource,
  ReporterType,
  OutputFile,
};

inline constexpr std::size_t kSweepKeyCount = static_cast<std::size_t>(SweepKey::OutputFile) + 1;

/// What a value is, with its one form as text.
enum class SweepValueKind : std::uint8_t {
  Text,
  Count,
  Number,
  Switch,   // "true", "false"
  Choice,   //
  Devices,  // "0,1", "cuda:0,cuda:1", "2xcpu", "auto"; a list of lists is a sweep
  Memory,   // "0=20GB,1=20GB", of a mapping
};

/// A word that a Choice takes.
struct SweepWord {
  std::string_view theirs;
  std::string_view ours;
};

/// A row of the table.
struct SweepKeyRow {
  SweepKey key;
  std::string_view path;    // "scenario.input_shapes.batch_size"
  std::string_view column;  // of a record's `config`; empty: it says nothing of what is measured
  SweepValueKind kind = SweepValueKind::Text;
  bool may_sweep = false;
  /// For which backends (m muster, o openai) and tasks (g generate, c completions, e embed, r
  /// rerank) it means something.
  std::string_view backends = "mo";
  std::string_view tasks = "gcer";
  std::string_view usual = {};  // empty: none
  double least = 0;             // Count, Number
  double most = 0;
  std::vector<SweepWord> words = {};  // Choice
};

/// The table, in the order of SweepKey.
/// Source of the names: ai_energy_benchmarks, config/parser.py, and docs/from-the-documents.md.
std::span<const SweepKeyRow> sweep_keys();

const SweepKeyRow& sweep_key(SweepKey key);

/// The row of a path; other programs' names of a key lead to it, too. nullptr: there is none.
const SweepKeyRow* find_sweep_key(std::string_view path);

/// Whether the path has keys below it: "scenario", "scenario.input_shapes".
bool is_sweep_section(std::string_view path);

/// The path that is most likely meant: the same key in another section, or the one most like it.
std::optional<std::string> nearest_sweep_path(std::string_view path);

/// Why a key that other programs have is none here; nullopt where nobody has it.
std::optional<std::string_view> refused_sweep_key(std::string_view path);

}  // namespace muster
