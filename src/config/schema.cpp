#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/check.h"
#include "base/text.h"

namespace muster {
namespace {

// The largest counts that are not surely a typing error; machines and models grow.
constexpr std::uint64_t kCoresMost = 4096;
constexpr std::uint64_t kTokensMost = 1 << 20;

// Long because it is a table, and a table is read best in one piece.
const std::array<Setting, kSettingCount>& schema() {
  using enum SettingType;
  static const std::array<Setting, kSettingCount> rows{{
      {SettingId::Devices, "devices", Text, "auto", "", "LIST",
       "auto, 2xcpu, cpu:0, cuda:0,cuda:2 or the UUID of a GPU"},
      {SettingId::CoresPerDevice,
       "cores_per_device",
       Count,
       "",
       "an even share",
       "N",
       "cores that each CPU device uses",
       {},
       1,
       kCoresMost},
      {SettingId::Precision,
       "precision",
       Choice,
       "auto",
       "",
       "P",
       "auto measures and takes the fastest that is exact enough",
       {"auto", "fp32", "bf16", "fp16"}},
      {SettingId::BatchTokens,
       "batch_tokens",
       Count,
       "4096",
       "",
       "N",
       "tokens that one batch may have",
       {},
       64,
       kTokensMost,
       {"max_batch_tokens"}},
      {SettingId::MaxLength,
       "max_length",
       Count,
       "",
       "the model's",
       "N",
       "tokens of a text, special ones included; the rest is cut",
       {},
       2,
       kTokensMost,
       {"max_seq_length"}},
      {SettingId::Pooling,
       "pooling",
       Choice,
       "",
       "the model's",
       "P",
       "how token rows become a vector",
       {"cls", "mean", "max", "last"}},
      {SettingId::Normalize, "normalize", Switch, "", "the model's", "",
       "scale vectors to length 1"},
      {SettingId::PromptName, "prompt_name", Text, "", "the model's", "NAME",
       "the prompt of the model that is put before every text"},
      {SettingId::Field, "field", Text, "text", "", "NAME",
       "where the text is: key in .jsonl, column in .csv"},
      {SettingId::IdField, "id_field", Text, "", "no ids", "NAME",
       "where an id is, to be kept in the index"},
      {SettingId::Format,
       "format",
       Choice,
       "auto",
       "",
       "F",
       "of the input; auto goes by each name's ending",
       {"auto", "lines", "jsonl", "csv", "tsv"}},
      {SettingId::SkipBad, "skip_bad", Switch, "false", "", "",
       "go on after a bad record; the index says why"},
      {SettingId::TorchRoot, "torch_root", Text, "", "found on this machine", "DIR",
       "the folder `torch` of a torch 2.11 wheel"},
      {SettingId::WorkerProgram, "worker_program", Text, "", "muster-worker beside muster", "FILE",
       "the program that owns one device"},
      {SettingId::CacheDir, "cache_dir", Text, "", "$XDG_CACHE_HOME/muster", "DIR",
       "where measured precision verdicts are kept"},
      {SettingId::NvmlPath, "nvml_path", Text, "", "libnvidia-ml.so.1", "FILE",
       "NVIDIA's management library, or one that stands in for it"},
      {SettingId::SysfsRoot, "sysfs_root", Text, "/", "", "DIR",
       "the folder in front of /sys and /proc, to look at a recorded machine"},
  }};
  return rows;
}

Result<std::string> check_count(const Setting& setting, std::string_view value,
                                std::string_view subject) {
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = code == std::errc{} && end == value.data() + value.size();
  if (!is_number || number < setting.least || number > setting.most) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} must be a whole number from {} to {}: \"{}\"", subject,
                             setting.least, setting.most, value)};
  }
  return std::to_string(number);
}

Result<std::string> check_switch(std::string_view value, std::string_view subject) {
  std::string small(value);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto* yes : {"true", "yes", "on", "1"}) {
    if (small == yes) return std::string("true");
  }
  for (const auto* no : {"false", "no", "off", "0"}) {
    if (small == no) return std::string("false");
  }
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} must be true or false: \"{}\"", subject, value)};
}

Result<std::string> check_choice(const Setting& setting, std::string_view value,
                                 std::string_view subject) {
  if (std::find(setting.choices.begin(), setting.choices.end(), value) != setting.choices.end()) {
    return std::string(value);
  }
  auto message =
      fmt::format("{} must be one of {}: \"{}\"", subject, fmt::join(setting.choices, ", "), value);
  if (const auto nearest = nearest_name(value, setting.choices)) {
    message += fmt::format("; did you mean {}?", *nearest);
  }
  return Error{ErrorKind::InvalidArgument, std::move(message)};
}

}  // namespace

std::span<const Setting> settings() { return schema(); }

const Setting& setting_of(SettingId id) {
  const auto& setting = schema().at(static_cast<std::size_t>(id));
  MUSTER_CHECK(setting.id == id);
  return setting;
}

const Setting* find_setting(std::string_view name) {
  for (const auto& setting : schema()) {
    const auto& aliases = setting.aliases;
    if (setting.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return &setting;
    }
  }
  return nullptr;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const auto& setting : schema()) names.emplace_back(setting.name);
  for (const auto& setting : schema()) {
    names.insert(names.end(), setting.aliases.begin(), setting.aliases.end());
  }
  return names;
}

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string variable_of(std::string_view name) {
  std::string variable = "MUSTER_";
  for (const char c : name) {
    variable += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

Result<std::string> check_value(const Setting& setting, std::string_view value,
                                std::string_view subject) {
  switch (setting.type) {
    case SettingType::Count:
      return check_count(setting, value, subject);
    case SettingType::Switch:
      return check_switch(value, subject);
    case SettingType::Choice:
      return check_choice(setting, value, subject);
    case SettingType::Text:
      break;
  }
  if (value.empty()) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} must not be empty", subject)};
  }
  return std::string(value);
}

}  // namespace muster
