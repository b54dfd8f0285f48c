// A stricter reader than Prometheus' own, for tests: it also refuses split families, repeated
// series and values that are not finite.

#include "metrics/strict_text.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/text.h"

namespace muster {
namespace {

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_char(char c) {
  return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

std::string take_name(std::string_view& rest) {
  std::size_t size = 0;
  if (!rest.empty() && is_name_start(rest[0])) {
    while (size < rest.size() && is_name_char(rest[size])) ++size;
  }
  std::string name(rest.substr(0, size));
  rest.remove_prefix(size);
  return name;
}

bool take(std::string_view& rest, std::string_view expected) {
  if (!rest.starts_with(expected)) return false;
  rest.remove_prefix(expected.size());
  return true;
}

// The text up to the closing quote; nullopt: an escape that is none, or no quote.
std::optional<std::string> take_value(std::string_view& rest) {
  std::string value;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return value;
    }
    if (rest[i] != '\\') {
      value += rest[i];
      continue;
    }
    if (++i == rest.size()) return std::nullopt;
    if (rest[i] != '\\' && rest[i] != '"' && rest[i] != 'n') return std::nullopt;
    value += rest[i] == 'n' ? '\n' : rest[i];
  }
  return std::nullopt;
}

class Reader {
 public:
  StrictText read(std::string_view text) {
    if (!text.empty() && text.back() != '\n') result_.fault = "the last line has no end";
    std::size_t number = 0;
    while (!text.empty() && result_.fault.empty()) {
      const auto line = text.substr(0, text.find('\n'));
      text.remove_prefix(line.size() + 1);
      ++number;
      const std::string fault = line.starts_with('#') ? read_comment(line) : read_series(line);
      if (!fault.empty()) {
        result_.fault = "line " + std::to_string(number) + ": " + fault + ": " + std::string(line);
      }
    }
    return std::move(result_);
  }

 private:
  std::string read_comment(std::string_view line) {
    if (take(line, "# HELP ")) {
      family_ = take_name(line);
      if (family_.empty() || !take(line, " ") || line.empty()) return "no name or no help";
      type_.clear();
      return families_.insert(family_).second ? "" : "a family comes twice";
    }
    if (!take(line, "# TYPE ")) return "a comment that is neither HELP nor TYPE";
    if (take_name(line) != family_ || !take(line, " ") || !type_.empty()) {
      return "TYPE does not follow its HELP";
    }
    type_ = line;
    const bool is_known = type_ == "gauge" || type_ == "counter" || type_ == "histogram";
    return is_known ? "" : "an unknown type";
  }

  // Equality of series is that of their text: labels in another order count as another series here,
  // which our writer never does.
  std::string read_series(std::string_view line) {
    const std::string_view whole = line;
    ReadSeries series;
    series.name = take_name(line);
    if (!is_of_family(series.name)) return "a series outside its family";
    if (take(line, "{")) {
      std::set<std::string> names;
      do {
        const auto name = take_name(line);
        if (name.empty() || !take(line, "=\"")) return "a label without a name or a value";
        const auto value = take_value(line);
        if (!value || invalid_utf8_at(*value)) return "a label value that cannot be read";
        if (!names.insert(name).second) return "a label comes twice";
        series.labels.emplace_back(name, *value);
      } while (take(line, ","));
      if (!take(line, "}")) return "no closing brace";
    }
    const auto key = whole.substr(0, whole.size() - line.size());
    if (!seen_.insert(std::string(key)).second) return "a series comes twice";
    if (!take(line, " ")) return "no space before the value";
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), series.value);
    if (error != std::errc() || end != line.data() + line.size() || !std::isfinite(series.value)) {
      return "a value that is no finite number";
    }
    if (type_ == "counter" && series.value < 0) return "a counter below zero";
    result_.series.push_back(std::move(series));
    return "";
  }

  bool is_of_family(const std::string& name) const {
    if (type_ != "histogram") return !type_.empty() && name == family_;
    return name == family_ + "_bucket" || name == family_ + "_sum" || name == family_ + "_count";
  }

  StrictText result_;
  std::string family_;
  std::string type_;
  std::set<std::string> families_;
  std::set<std::string> seen_;
};

}  // namespace

StrictText read_strictly(std::string_view text) { return Reader().read(text); }

}  // namespace muster
