#include "deploy/yaml_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=";

// What a reader of YAML 1.1 takes for a truth value or null. Source: yaml.org/type/bool.html, null.
bool is_keyword(std::string_view text) {
  constexpr std::array<std::string_view, 8> kWords{"y",  "n",   "yes",  "no",
                                                   "on", "off", "true", "false"};
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower == "null" || std::find(kWords.begin(), kWords.end(), lower) != kWords.end();
}

}  // namespace

std::string yaml_scalar(std::string_view text) {
  // A letter or a slash first excludes numbers, dates, "---", ".nan" and all indicators.
  const bool starts_safely =
      !text.empty() &&
      (std::isalpha(static_cast<unsigned char>(text.front())) != 0 || text.front() == '/');
  const bool is_plain = starts_safely && text.find_first_not_of(kPlain) == std::string_view::npos;
  if (is_plain && !is_keyword(text)) return std::string(text);
  // A JSON string is a YAML string. Source: YAML 1.2.2, section 1.2.
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster
