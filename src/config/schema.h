#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// Every setting that a file, the environment or a flag can give. Each is read by some command.
enum class SettingId : std::uint8_t {
  Devices,
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
};

inline constexpr std::size_t kSettingCount = 17;

enum class SettingType : std::uint8_t { Text, Count, Switch, Choice };

/// One row of the schema. `name` is the key in a file; `--batch-tokens` and MUSTER_BATCH_TOKENS
/// follow from it.
struct Setting {
  SettingId id;
  std::string_view name;  // "batch_tokens"
  SettingType type;
  std::string_view default_value;  // empty: none
  std::string_view default_note;   // what happens without a value: "the model's"
  std::string_view value_name;     // in help: "N"
  std::string_view help;
  std::vector<std::string> choices = {};  // Choice
  std::uint64_t least = 0;                // Count
  std::uint64_t most = 0;                 // Count
  std::vector<std::string> aliases = {};  // names that other programs use for the same thing
};

/// The schema, in the order of SettingId.
std::span<const Setting> settings();

const Setting& setting_of(SettingId id);

/// The setting with this name or alias ("max_seq_length"); nullptr if there is none.
const Setting* find_setting(std::string_view name);

/// All names, then all aliases.
std::vector<std::string> setting_names();

/// "batch_tokens" -> "--batch-tokens".
std::string flag_of(std::string_view name);

/// "batch_tokens" -> "MUSTER_BATCH_TOKENS".
std::string variable_of(std::string_view name);

/// Checks a value against type and range and gives it in its one form ("yes" -> "true").
///
/// subject: what the message begins with: "muster.yaml:3: precision", "MUSTER_PRECISION",
/// "--precision". Errors: InvalidArgument, naming subject, range or nearest choice, and the value.
Result<std::string> check_value(const Setting& setting, std::string_view value,
                                std::string_view subject);

}  // namespace muster
