// YAML allows lists and maps where the environment has only text. They are rewritten into that
// text, so that a setting has one parser whatever its source.
// Every message has file, line and setting. A name in a mapping may not hold the characters that
// separate entries in the text, because it would be read back as something else.

#include "config/yaml_value.h"

#include <fmt/format.h>

#include "config/model_entries.h"
#include "config/values.h"

namespace muster {
namespace {

using Kind = YamlValue::Kind;

// Where a value stands in one file, and how to say what is wrong with it.
class Reader {
 public:
  Reader(const Setting& setting, const std::string& file_name)
      : setting_(setting), file_name_(file_name) {}

  Result<std::string> map(const YamlValue& value) const {
    TextPairs pairs;
    for (std::size_t i = 0; i < value.values.size(); ++i) {
      auto text = MUSTER_TRY(words(value.values[i]));
      if (value.keys[i].find_first_of("=,;") != std::string::npos) {
        return fail(value.values[i], fmt::format("no = , or ; in a name: {}", value.keys[i]));
      }
      pairs.emplace_back(value.keys[i], std::move(text));
    }
    return map_text(pairs);
  }

  // A plain value, or plain values with commas between.
  Result<std::string> words(const YamlValue& value) const {
    if (value.kind == Kind::Plain) return value.text;
    std::string text;
    for (const auto& one : value.values) {
      if (value.kind == Kind::Mapping || one.kind != Kind::Plain) {
        return fail(value, "expected a plain value or a list of them");
      }
      if (!text.empty()) text += ',';
      text += one.text;
    }
    return text;
  }

  Result<std::string> models(const YamlValue& value) const {
    std::vector<ModelEntry> entries;
    for (const auto& one : value.values) {
      const auto subject = place(one);
      if (one.kind == Kind::Plain) {
        const auto plain = MUSTER_TRY(parse_model_entries(one.text, subject));
        entries.insert(entries.end(), plain.begin(), plain.end());
        continue;
      }
      if (one.kind == Kind::List) return fail(one, "a model is a name or a mapping");
      auto& entry = entries.emplace_back();
      for (std::size_t i = 0; i < one.values.size(); ++i) {
        const auto text = MUSTER_TRY(words(one.values[i]));
        MUSTER_TRY(set_model_field(entry, one.keys[i], text, place(one.values[i])));
      }
      MUSTER_TRY(check_model_entries({entry}, subject));
    }
    MUSTER_TRY(check_model_entries(entries, place(value)));
    return model_entries_text(entries);
  }

 private:
  std::string place(const YamlValue& value) const {
    return fmt::format("{}:{}: {}", file_name_, value.line, setting_.name);
  }

  Error fail(const YamlValue& value, const std::string& message) const {
    return Error{ErrorKind::InvalidArgument, fmt::format("{}: {}", place(value), message)};
  }

  const Setting& setting_;
  const std::string& file_name_;
};

}  // namespace

// A plain value is the text itself; anything else must suit the setting's type, and the message
// says what would.
Result<std::string> setting_text(const Setting& setting, const YamlValue& value,
                                 const std::string& file_name) {
  const Reader reader(setting, file_name);
  if (value.kind == Kind::Plain) return value.text;
  const bool is_files = setting.type == SettingType::Files;
  const bool is_map = setting.type == SettingType::Map || is_files;
  if (value.kind == Kind::Mapping && is_map) return reader.map(value);
  if (value.kind == Kind::List && is_files) return reader.words(value);
  if (value.kind == Kind::List && setting.type == SettingType::Models) return reader.models(value);
  const bool is_list = value.kind == Kind::List;
  const auto* wanted = is_files                              ? "a mapping, a list or a plain value"
                       : setting.type == SettingType::Map    ? "a mapping or a plain value"
                       : setting.type == SettingType::Models ? "a list or a plain value"
                                                             : "a single value";
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}:{}: {} takes {}, not a {}", file_name, value.line, setting.name,
                           wanted, is_list ? "list" : "mapping")};
}

}  // namespace muster
