// A YAML document as JSON.

#include "server/yaml_json.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

template <typename Number>
bool read_whole(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

Json scalar_json(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // it stands in quotes, or is a block
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true" || text == "false") return text == "true";
  std::int64_t whole = 0;
  if (read_whole(text, whole)) return whole;
  double number = 0;
  const bool begins_as_number = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
  if (begins_as_number && read_whole(text, number)) return number;
  return text;
}

Json node_json(const YAML::Node& node) {  // NOLINT(misc-no-recursion): as deep as the document
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const auto& item : node) list.push_back(node_json(item));
    return list;
  }
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& item : node) object[item.first.Scalar()] = node_json(item.second);
    return object;
  }
  return node.IsScalar() ? scalar_json(node) : Json(nullptr);
}

}  // namespace

std::string yaml_as_json(std::string_view yaml) {
  try {
    return node_json(YAML::Load(std::string(yaml))).dump();
  } catch (const YAML::Exception&) {
    return {};
  }
}

}  // namespace muster
