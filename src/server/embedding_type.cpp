// The names of embedding types in bodies.

#include "server/embedding_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/call_fields.h"

namespace muster {
namespace {

struct TypeName {
  std::string_view name;
  EmbeddingFormat format;
};
constexpr std::array kTypes{
    TypeName{"float", EmbeddingFormat::Float},   TypeName{"base64", EmbeddingFormat::Base64},
    TypeName{"int8", EmbeddingFormat::Int8},     TypeName{"uint8", EmbeddingFormat::Uint8},
    TypeName{"binary", EmbeddingFormat::Binary}, TypeName{"ubinary", EmbeddingFormat::Ubinary}};

ApiStatus add_type(JsonValue& value, std::string_view name, std::vector<EmbeddingFormat>& formats) {
  const std::string word = MUSTER_TRY(read_text(value, name, kNameBytesMost));
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const TypeName& type) { return type.name == word; });
  if (found == kTypes.end()) {
    return wrong_field(name, "invalid_value",
                       fmt::format("Invalid '{}': expected 'float', 'base64', 'int8', 'uint8', "
                                   "'binary' or 'ubinary'.",
                                   name));
  }
  if (std::find(formats.begin(), formats.end(), found->format) != formats.end()) {
    return wrong_field(name, "invalid_value",
                       fmt::format("Invalid '{}': '{}' is given twice.", name, found->name));
  }
  formats.push_back(found->format);
  return Done{};
}

}  // namespace

std::string_view embedding_type_name(EmbeddingFormat format) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const TypeName& type) { return type.format == format; });
  return found == kTypes.end() ? "" : found->name;
}

ApiStatus read_embedding_types(JsonValue& value, std::string_view name,
                               std::vector<EmbeddingFormat>& formats) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (type != simdjson::ondemand::json_type::array) return add_type(value, name, formats);
  simdjson::ondemand::array array;
  if (const auto fault = value.get_array().get(array)) return broken_json(fault);
  for (auto item : array) {
    JsonValue element;
    if (const auto fault = item.get(element)) return broken_json(fault);
    MUSTER_TRY(add_type(element, name, formats));
  }
  if (formats.empty()) return empty_list(name);
  return Done{};
}

}  // namespace muster
