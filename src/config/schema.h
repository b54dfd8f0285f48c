#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// Every setting that a file, the environment or a flag can give. Each is read by some command.
enum class SettingId : std::uint8_t {
  // schema_work.cpp: where and how a model runs, and on what texts.
  Devices,
  DeviceCountMost,
  CoresPerDevice,
  Precision,
  BatchTokens,
  MaxLength,
  Pooling,
  Normalize,
  PromptName,
  Field,
  IdField,
  Format,
  SkipBad,
  TorchRoot,
  WorkerProgram,
  CacheDir,
  NvmlPath,
  SysfsRoot,
  // schema_server.cpp: what `muster serve` is to its clients.
  Models,
  Search,
  ModelsMost,
  Listen,
  UnixSocket,
  UnixSocketMode,
  TlsCert,
  TlsKey,
  TlsClientCa,
  KeysFile,
  ApiKey,
  AuditLog,
  MaxBodyBytes,
  ConnectionsMost,
  MemoryMost,
  MaxClientBatchSize,
  AutoTruncate,
  RequestTimeout,
  RequestTimeoutMost,
  DrainTimeout,
  // schema_fleet.cpp: how it uses its devices, what it keeps, what it writes down.
  LoadBalancingStrategy,
  MemoryThreshold,
  DeviceWeights,
  TaskTypes,
  PlacementExpression,
  QueueBudget,
  QueuedTokensMost,
  QueuedTextsMost,
  QueuedRepliesMost,
  MaxNumSeqs,
  BatchTime,
  LowLatency,
  CanaryInterval,
  CanaryTimeout,
  CacheEnabled,
  CacheSize,
  CacheEntries,
  CacheTtl,
  CacheFile,
  CacheScope,
  PrefixCache,
  SpeculativeTokens,
  KvCacheDtype,
  KvCacheSize,
  LogLevel,
  LogFormat,
  LogDir,
  StatsFile,
  StatsInterval,
};

inline constexpr std::size_t kSettingCount = static_cast<std::size_t>(SettingId::StatsInterval) + 1;

/// The kinds of values, with their one form as text.
enum class SettingType : std::uint8_t {
  Text,
  Count,
  Switch,    // "true", "false"
  Choice,    //
  Time,      // "2s", "500ms"; least and most are milliseconds
  Bytes,     // "256MiB"
  Fraction,  // "0.8"; also given as "80%"
  Map,       // "cuda:0=2,cuda:1=1"; "query=cuda:0;document=cuda:1,cuda:2" where a value has commas
  Files,     // "NAME=PATH" with commas between; also given as "PATH", whose name is the file's
  Models,    // JSON, an object for each model; also given as "PATH" and "NAME=PATH" with commas
};

/// One row of the schema. `name` is the key in a file; `--batch-tokens` and MUSTER_BATCH_TOKENS
/// follow from it.
struct Setting {
  SettingId id;
  std::string_view name;  // "batch_tokens"
  SettingType type;
  std::string_view default_value = {};  // empty: none
  std::string_view default_note = {};   // what happens without a value: "the model's"
  std::string_view value_name = {};     // in help: "N"
  std::string_view help;
  std::vector<std::string> choices = {};  // Choice
  std::uint64_t least = 0;                // Count, Time, Bytes
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::string> aliases = {};  // names that other programs use for the same thing
  bool is_live = false;                   // a running server can be given another value
  bool is_secret = false;                 // where a secret lies: no server tells it
  bool is_hidden = false;                 // a secret itself: nothing prints it
  // Names a place of this machine, or decides who is let in: no request sets it, only whoever may
  // write the file, the environment or the command line; only administrators are shown it.
  bool is_host_only = false;
  // Of a Choice: words that count for models that generate and no others. Commands that have none
  // refuse them, and their help is without them.
  std::vector<std::string> decoder_choices = {};
};

/// The schema, in the order of SettingId.
std::span<const Setting> settings();

const Setting& setting_of(SettingId id);

/// A value as people and programs may be shown it: "(set)" for a hidden one.
std::string shown_value(const Setting& setting, std::string_view value);

/// The setting with this name or alias ("max_seq_length"); nullptr if there is none.
const Setting* find_setting(std::string_view name);

/// All names, then all aliases.
std::vector<std::string> setting_names();

/// The setting that somebody who wrote `name` may have meant: one that other programs call so
/// ("gpu_ids" is `devices`), else the name or alias that is most like it; nullopt if none is.
/// Source of the other names: docs/from-the-documents.md.
std::optional<std::string> nearest_setting(std::string_view name);

/// "unknown setting: batch_token; did you mean batch_tokens?", and of several names each with its
/// own: "unknown settings: …". names: at least one.
std::string unknown_settings_text(std::span<const std::string> names);

/// "batch_tokens" -> "--batch-tokens".
std::string flag_of(std::string_view name);

/// "batch_tokens" -> "MUSTER_BATCH_TOKENS".
std::string variable_of(std::string_view name);

}  // namespace muster
