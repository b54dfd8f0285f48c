#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

using JsonElement = simdjson::dom::element;
using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;

/// `tokenizer.json: <what>: <value>`.
Error corrupt_json(std::string_view what, std::string_view value);

/// `tokenizer.json: unsupported <part> "<name>"`.
Error unsupported_part(std::string_view part, std::string_view name);

// Fields of one object. A missing or null field is nullopt for the `optional_` ones and Corrupt for
// the rest; a field of another type is Corrupt for all.

Result<std::optional<JsonElement>> optional_field(const JsonObject& object, std::string_view name);
Result<std::optional<std::string>> optional_text(const JsonObject& object, std::string_view name);
Result<std::optional<bool>> optional_bool(const JsonObject& object, std::string_view name);
Result<JsonElement> field(const JsonObject& object, std::string_view name);
Result<std::string> text_field(const JsonObject& object, std::string_view name);
Result<bool> bool_field(const JsonObject& object, std::string_view name);
Result<JsonArray> array_field(const JsonObject& object, std::string_view name);

/// The element as an object; Corrupt if it is none.
Result<JsonObject> as_object(const JsonElement& element, std::string_view name);

/// A token id: an integer below 2^32 - 1.
Result<std::uint32_t> as_token_id(const JsonElement& element, std::string_view name);

/// A missing or null field has the value `otherwise`.
Result<std::string> text_field_or(const JsonObject& object, std::string_view name,
                                  std::string otherwise);
Result<bool> bool_field_or(const JsonObject& object, std::string_view name, bool otherwise);

/// The steps of a part in their order: the part itself, or what its sequences hold, whose field is
/// `list_name`, with the sequences inside opened, too.
///
/// Errors: Unsupported beyond kNestingMax levels or kStepsMax steps; a real file has two and five.
inline constexpr int kNestingMax = 16;
inline constexpr std::size_t kStepsMax = 64;
Result<std::vector<JsonObject>> steps_of(const JsonObject& part, std::string_view list_name);

/// {"String": ...} or {"Regex": ...} of `pattern`.
struct JsonPattern {
  std::string text;
  bool is_regex = false;
};
Result<JsonPattern> pattern_field(const JsonObject& object);

}  // namespace muster
