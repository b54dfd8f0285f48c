// One parser per type of value. Each also produces the one form in which the value is stored and
// shown, so that "1.5s" and "1500ms" compare equal after reading.
// Limits of a setting are checked on the parsed number, so they hold in any unit.

#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "base/text.h"
#include "config/model_entries.h"

namespace muster {
namespace {

Error invalid(std::string_view subject, std::string_view must, std::string_view value) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{} must be {}: \"{}\"", subject, must, value)};
}

// The stored form has whole seconds where it can, else milliseconds, so equal times have equal
// text.
std::string time_text(std::uint64_t milliseconds) {
  if (milliseconds % 1000 == 0) return fmt::format("{}s", milliseconds / 1000);
  return fmt::format("{}ms", milliseconds);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits.at(unit));
}

Result<std::string> check_count(const Setting& setting, std::string_view value,
                                std::string_view subject) {
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = code == std::errc{} && end == value.data() + value.size();
  if (!is_number || number < setting.least || number > setting.most) {
    return invalid(subject,
                   fmt::format("a whole number from {} to {}", setting.least, setting.most), value);
  }
  return std::to_string(number);
}

// Accepts what YAML, shells and other programs write for yes and no.
Result<std::string> check_switch(std::string_view value, std::string_view subject) {
  std::string small(value);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto* yes : {"true", "yes", "on", "1"}) {
    if (small == yes) return std::string("true");
  }
  for (const auto* no : {"false", "no", "off", "0"}) {
    if (small == no) return std::string("false");
  }
  return invalid(subject, "true or false", value);
}

Result<std::string> check_choice(const Setting& setting, std::string_view value,
                                 std::string_view subject) {
  for (const auto* words : {&setting.choices, &setting.decoder_choices}) {
    if (std::find(words->begin(), words->end(), value) != words->end()) return std::string(value);
  }
  auto expected = fmt::format("one of {}", fmt::join(setting.choices, ", "));
  if (!setting.decoder_choices.empty()) {
    expected +=
        fmt::format(", or {} for models that generate", fmt::join(setting.decoder_choices, ", "));
  }
  auto error = invalid(subject, expected, value);
  if (const auto nearest = nearest_name(value, setting.choices)) {
    error.message += fmt::format("; did you mean {}?", *nearest);
  }
  return error;
}

Result<std::string> check_time(const Setting& setting, std::string_view value,
                               std::string_view subject) {
  const auto time = parse_milliseconds(value);
  if (!time || *time < setting.least || *time > setting.most) {
    return invalid(subject,
                   fmt::format("a time such as 500ms, 2s or 1m, from {} to {}",
                               time_text(setting.least), time_text(setting.most)),
                   value);
  }
  return time_text(*time);
}

Result<std::string> check_bytes(const Setting& setting, std::string_view value,
                                std::string_view subject) {
  const auto bytes = parse_bytes(value);
  if (!bytes || *bytes < setting.least || *bytes > setting.most) {
    return invalid(subject,
                   fmt::format("a size such as 64KiB, 256MiB or 1GB, from {} to {}",
                               bytes_text(setting.least), bytes_text(setting.most)),
                   value);
  }
  return bytes_text(*bytes);
}

Result<std::string> check_fraction(std::string_view value, std::string_view subject) {
  const auto fraction = parse_fraction(value);
  if (!fraction)
    return invalid(subject, "a share such as 0.8 or 80%, above 0 and at most 1", value);
  return fmt::format("{}", *fraction);
}

}  // namespace

// A comma separates entries, and may also stand inside a list of values: a piece without "="
// belongs to the entry before it. A semicolon separates entries too, which is needed where
// values hold commas.
Result<TextPairs> parse_map(std::string_view text, std::string_view subject) {
  TextPairs pairs;
  for (const auto& part : split(text, ';')) {
    for (const auto& raw : split(part, ',')) {
      const auto piece = trim(raw);
      const auto equals = piece.find('=');
      if (equals == std::string_view::npos && !pairs.empty() && !piece.empty()) {
        pairs.back().second += fmt::format(",{}", piece);
        continue;
      }
      const auto key = trim(piece.substr(0, std::min(equals, piece.size())));
      const auto value =
          equals == std::string_view::npos ? std::string_view{} : trim(piece.substr(equals + 1));
      if (key.empty() || value.empty()) {
        return invalid(subject, "entries of the form name=value, with commas between", text);
      }
      for (const auto& [other, ignored] : pairs) {
        if (other == key) {
          return Error{ErrorKind::InvalidArgument,
                       fmt::format("{} names {} twice: \"{}\"", subject, key, text)};
        }
      }
      pairs.emplace_back(key, value);
    }
  }
  return pairs;
}

// A piece is NAME=PATH only if nothing before the "=" looks like a path: a path may hold "="
// too.
Result<TextPairs> parse_named_files(std::string_view text, std::string_view subject) {
  TextPairs pairs;
  for (const auto& raw : split(text, ',')) {
    const auto piece = trim(raw);
    const auto equals = piece.find('=');
    const bool is_named = equals != std::string_view::npos &&
                          piece.substr(0, equals).find('/') == std::string_view::npos;
    const auto path = is_named ? trim(piece.substr(equals + 1)) : piece;
    const auto name = is_named ? std::string(trim(piece.substr(0, equals)))
                               : std::filesystem::path(path).stem().string();
    if (name.empty() || path.empty() || name.find('=') != std::string::npos) {
      return invalid(subject, "files of the form NAME=PATH or PATH, with commas between", text);
    }
    for (const auto& [other, ignored] : pairs) {
      if (other != name) continue;
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("{} names {} twice: NAME=PATH gives another name: \"{}\"", subject,
                               name, text)};
    }
    pairs.emplace_back(name, path);
  }
  return pairs;
}

// Written with semicolons only where a value has commas, so that the result reads back as the
// same pairs.
std::string map_text(const TextPairs& pairs) {
  bool has_lists = false;
  for (const auto& [key, value] : pairs) has_lists |= value.find(',') != std::string::npos;
  std::string text;
  for (const auto& [key, value] : pairs) {
    if (!text.empty()) text += has_lists ? ';' : ',';
    text += fmt::format("{}={}", key, value);
  }
  return text;
}

Result<std::string> check_value(const Setting& setting, std::string_view value,
                                std::string_view subject) {
  if (value.empty()) {
    return Error{ErrorKind::InvalidArgument, fmt::format("{} must not be empty", subject)};
  }
  switch (setting.type) {
    case SettingType::Count:
      return check_count(setting, value, subject);
    case SettingType::Switch:
      return check_switch(value, subject);
    case SettingType::Choice:
      return check_choice(setting, value, subject);
    case SettingType::Time:
      return check_time(setting, value, subject);
    case SettingType::Bytes:
      return check_bytes(setting, value, subject);
    case SettingType::Fraction:
      return check_fraction(value, subject);
    case SettingType::Map: {
      const auto pairs = MUSTER_TRY(parse_map(value, subject));
      return map_text(pairs);
    }
    case SettingType::Files: {
      const auto pairs = MUSTER_TRY(parse_named_files(value, subject));
      return map_text(pairs);
    }
    case SettingType::Models: {
      const auto entries = MUSTER_TRY(parse_model_entries(value, subject));
      return model_entries_text(entries);
    }
    case SettingType::Text:
      break;
  }
  return std::string(value);
}

}  // namespace muster
