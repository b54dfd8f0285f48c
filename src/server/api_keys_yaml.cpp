// Walks the YAML nodes instead of converting them, because each node knows its line and every
// message points to one. A field that is not known is refused: a misspelt limit or expiry would
// silently grant more than was meant. Names and digests must be unique, since limits are counted by
// name and the digest decides who calls.

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <set>

#include "base/text.h"
#include "server/api_keys.h"

namespace muster {
namespace {

const std::vector<std::string>& known_fields() {
  static const std::vector<std::string> fields{
      "name",   "sha256", "scopes", "requests_per_minute", "tokens_per_minute", "requests_at_once",
      "expires"};
  return fields;
}

constexpr std::size_t kNameSizeMost = 64;

// Where a message points to.
struct Place {
  const std::string& file_name;
  int line;  // as people count
};

Error fault(const Place& place, const std::string& what) {
  return Error{ErrorKind::InvalidArgument,
               fmt::format("{}:{}: {}", place.file_name, place.line, what)};
}

Place place_of(const std::string& file_name, const YAML::Node& node) {
  return {file_name, std::max(0, node.Mark().line) + 1};  // an empty document has no line
}

Result<std::string> plain(const Place& place, const std::string& field, const YAML::Node& value) {
  if (!value.IsScalar())
    return fault(place, fmt::format("{} must be one value, not a list or a map of values", field));
  return value.Scalar();
}

// A name stands in log lines and metrics as it is, so it holds no character that needs quoting
// there.
Status read_name(const Place& place, const std::string& text, ApiKey& key) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const bool is_good = !text.empty() && text.size() <= kNameSizeMost &&
                       std::all_of(text.begin(), text.end(), is_allowed);
  if (!is_good) {
    return fault(place,
                 fmt::format("name is 1 to {} of A-Z a-z 0-9 . _ -: \"{}\"", kNameSizeMost, text));
  }
  key.name = text;
  return Done{};
}

Status read_digest(const Place& place, std::string_view text, ApiKey& key) {
  const auto wrong = [&] {
    return fault(place, "sha256 is 64 hexadecimal digits, as `muster keys new` writes them");
  };
  if (text.size() != 2 * key.sha256.size()) return wrong();
  for (std::size_t i = 0; i < key.sha256.size(); ++i) {
    std::uint8_t byte = 0;
    const char* const end = text.data() + 2 * i + 2;
    const auto read = std::from_chars(end - 2, end, byte, 16);
    if (read.ec != std::errc{} || read.ptr != end) return wrong();
    key.sha256[i] = static_cast<std::byte>(byte);
  }
  return Done{};
}

Status read_scopes(const Place& place, const YAML::Node& value, ApiKey& key) {
  if (!value.IsSequence() || value.size() == 0) {
    return fault(place, "scopes is a list such as [embed, read]");
  }
  key.scopes = {};
  for (const auto& item : value) {
    const auto name = MUSTER_TRY(plain(place, "a scope", item));
    const auto scope = parse_key_scope(name);
    if (!scope) return fault(place, scope.error().message);
    key.scopes[static_cast<std::size_t>(*scope)] = true;
  }
  return Done{};
}

// `inf` and `nan` parse as numbers, and both would switch a limit off.
Result<double> positive(const Place& place, const std::string& field, const std::string& text) {
  double number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || !std::isfinite(number) ||
      number <= 0) {
    return fault(place, fmt::format("{} is a number above 0: \"{}\"", field, text));
  }
  return number;
}

Result<std::uint32_t> positive_count(const Place& place, const std::string& field,
                                     const std::string& text) {
  std::uint32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number == 0) {
    return fault(place, fmt::format("{} is a whole number above 0: \"{}\"", field, text));
  }
  return number;
}

// The beginning of a day by UTC.
Result<double> day(const Place& place, const std::string& text) {
  const auto wrong = [&] {
    return fault(place, fmt::format("expires is a day such as 2027-01-01: \"{}\"", text));
  };
  const auto number = [&](std::size_t at, std::size_t size) {
    int value = -1;
    const char* const end = text.data() + at + size;
    const auto read = std::from_chars(text.data() + at, end, value);
    return read.ec == std::errc{} && read.ptr == end ? value : -1;
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return wrong();
  const int year = number(0, 4);
  const int month = number(5, 2);
  const int of_month = number(8, 2);
  if (year < 0 || month < 0 || of_month < 0) return wrong();
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(of_month))};
  if (!date.ok()) return wrong();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::seconds>(
                                 std::chrono::sys_days(date).time_since_epoch())
                                 .count());
}

Status read_field(const Place& place, const std::string& field, const YAML::Node& value,
                  ApiKey& key) {
  if (field == "scopes") return read_scopes(place, value, key);
  const auto text = MUSTER_TRY(plain(place, field, value));
  if (field == "name") return read_name(place, text, key);
  if (field == "sha256") return read_digest(place, text, key);
  if (field == "requests_per_minute") {
    key.limits.requests_per_minute = MUSTER_TRY(positive(place, field, text));
  } else if (field == "tokens_per_minute") {
    key.limits.tokens_per_minute = MUSTER_TRY(positive(place, field, text));
  } else if (field == "requests_at_once") {
    key.limits.requests_at_once = MUSTER_TRY(positive_count(place, field, text));
  } else {
    key.expires_unix_seconds = MUSTER_TRY(day(place, text));
  }
  return Done{};
}

Result<ApiKey> read_entry(const std::string& file_name, const YAML::Node& entry) {
  if (!entry.IsMap())
    return fault(place_of(file_name, entry), "a key is \"name: …\", \"sha256: …\"");
  ApiKey key;
  std::set<std::string> seen;
  for (const auto& pair : entry) {
    const auto place = place_of(file_name, pair.first);
    const auto field = MUSTER_TRY(plain(place, "a field's name", pair.first));
    if (std::find(known_fields().begin(), known_fields().end(), field) == known_fields().end()) {
      const auto nearest = nearest_name(field, known_fields());
      return fault(place, fmt::format("unknown field {}; {}", field,
                                      nearest ? fmt::format("did you mean {}?", *nearest)
                                              : fmt::format("there are {}",
                                                            fmt::join(known_fields(), ", "))));
    }
    if (!seen.insert(field).second) return fault(place, fmt::format("{} is there twice", field));
    MUSTER_TRY(read_field(place, field, pair.second, key));
  }
  for (const auto* field : {"name", "sha256"}) {
    if (seen.count(field) == 0) {
      return fault(place_of(file_name, entry), fmt::format("the key has no {}", field));
    }
  }
  return key;
}

Result<std::vector<ApiKey>> read_document(const std::string& file_name, const YAML::Node& root) {
  if (!root.IsMap() || root.size() != 1 || !root.begin()->first.IsScalar() ||
      root.begin()->first.Scalar() != "keys") {
    return fault(place_of(file_name, root),
                 "a keys file has one field, \"keys\", and it is a list");
  }
  const auto list = root.begin()->second;
  std::vector<ApiKey> keys;
  if (list.IsNull()) return keys;
  if (!list.IsSequence()) return fault(place_of(file_name, list), "keys is a list");
  std::set<std::string> names;
  std::set<Sha256Digest> digests;
  for (const auto& entry : list) {
    auto key = MUSTER_TRY(read_entry(file_name, entry));
    const auto place = place_of(file_name, entry);
    if (!names.insert(key.name).second) {
      return fault(place, fmt::format("a key named {} is there already", key.name));
    }
    if (!digests.insert(key.sha256).second) {
      return fault(place,
                   fmt::format("the key of {} is there already under another name", key.name));
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

Result<std::vector<ApiKey>> parse_api_keys(const std::string& file_name, std::string_view text) {
  try {
    return read_document(file_name, YAML::Load(std::string(text)));
  } catch (const YAML::Exception& error) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("{}:{}: {}", file_name, error.mark.line + 1, error.msg)};
  }
}

}  // namespace muster
