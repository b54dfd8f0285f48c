// Reading fields with errors that name the field. A null counts as absent everywhere, since the
// library writes null for an option that is not set. Sequences are flattened while they are
// read; depth and number of steps are bounded, as a file could nest them until the stack ends.

#include "tokenizer/reading/json_fields.h"

#include <limits>
#include <utility>

namespace muster {
namespace {

Status append_steps(const JsonObject& part, std::string_view list_name, int depth,
                    std::vector<JsonObject>& steps) {
  const auto type = MUSTER_TRY(text_field(part, "type"));
  if (depth > kNestingMax || steps.size() >= kStepsMax) {
    return unsupported_part("nesting or length of", "Sequence");
  }
  if (type != "Sequence") {
    steps.push_back(part);
    return Done{};
  }
  const auto elements = MUSTER_TRY(array_field(part, list_name));
  for (const JsonElement element : elements) {
    const auto step = MUSTER_TRY(as_object(element, list_name));
    MUSTER_TRY(append_steps(step, list_name, depth + 1, steps));
  }
  return Done{};
}

}  // namespace

Error corrupt_json(std::string_view what, std::string_view value) {
  return Error{ErrorKind::Corrupt,
               "tokenizer.json: " + std::string(what) + ": " + std::string(value)};
}

Error unsupported_part(std::string_view part, std::string_view name) {
  return Error{ErrorKind::Unsupported, "tokenizer.json: unsupported " + std::string(part) + " \"" +
                                           std::string(name) + "\""};
}

Result<std::optional<JsonElement>> optional_field(const JsonObject& object, std::string_view name) {
  JsonElement element;
  const auto code = object.at_key(name).get(element);
  if (code == simdjson::NO_SUCH_FIELD || (code == simdjson::SUCCESS && element.is_null())) {
    return std::optional<JsonElement>();
  }
  if (code != simdjson::SUCCESS) {
    return corrupt_json("field cannot be read", name);
  }
  return std::optional(element);
}

Result<std::optional<std::string>> optional_text(const JsonObject& object, std::string_view name) {
  const auto element = MUSTER_TRY(optional_field(object, name));
  std::string_view text;
  if (element && element->get(text) != simdjson::SUCCESS) {
    return corrupt_json("field is not a string", name);
  }
  return element ? std::optional(std::string(text)) : std::nullopt;
}

Result<std::optional<bool>> optional_bool(const JsonObject& object, std::string_view name) {
  const auto element = MUSTER_TRY(optional_field(object, name));
  bool value = false;
  if (element && element->get(value) != simdjson::SUCCESS) {
    return corrupt_json("field is not true or false", name);
  }
  return element ? std::optional(value) : std::nullopt;
}

Result<JsonElement> field(const JsonObject& object, std::string_view name) {
  const auto element = MUSTER_TRY(optional_field(object, name));
  if (!element) {
    return corrupt_json("field is missing", name);
  }
  return *element;
}

Result<std::string> text_field_or(const JsonObject& object, std::string_view name,
                                  std::string otherwise) {
  auto text = MUSTER_TRY(optional_text(object, name));
  return text ? std::move(*text) : std::move(otherwise);
}

Result<bool> bool_field_or(const JsonObject& object, std::string_view name, bool otherwise) {
  const auto value = MUSTER_TRY(optional_bool(object, name));
  return value.value_or(otherwise);
}

Result<std::string> text_field(const JsonObject& object, std::string_view name) {
  MUSTER_TRY(field(object, name));
  return text_field_or(object, name, "");
}

Result<bool> bool_field(const JsonObject& object, std::string_view name) {
  MUSTER_TRY(field(object, name));
  return bool_field_or(object, name, false);
}

Result<JsonArray> array_field(const JsonObject& object, std::string_view name) {
  const auto element = MUSTER_TRY(field(object, name));
  JsonArray array;
  if (element.get(array) != simdjson::SUCCESS) {
    return corrupt_json("field is not a list", name);
  }
  return array;
}

Result<JsonObject> as_object(const JsonElement& element, std::string_view name) {
  JsonObject object;
  if (element.get(object) != simdjson::SUCCESS) {
    return corrupt_json("not an object", name);
  }
  return object;
}

Result<std::uint32_t> as_token_id(const JsonElement& element, std::string_view name) {
  std::uint64_t id = 0;
  if (element.get(id) != simdjson::SUCCESS || id >= std::numeric_limits<std::uint32_t>::max()) {
    return corrupt_json("not a token id", name);
  }
  return static_cast<std::uint32_t>(id);
}

Result<std::vector<JsonObject>> steps_of(const JsonObject& part, std::string_view list_name) {
  std::vector<JsonObject> steps;
  MUSTER_TRY(append_steps(part, list_name, 0, steps));
  return steps;
}

Result<JsonPattern> pattern_field(const JsonObject& object) {
  const auto element = MUSTER_TRY(field(object, "pattern"));
  const auto pattern = MUSTER_TRY(as_object(element, "pattern"));
  if (auto literal = MUSTER_TRY(optional_text(pattern, "String"))) {
    return JsonPattern{std::move(*literal), false};
  }
  auto regex = MUSTER_TRY(text_field(pattern, "Regex"));
  return JsonPattern{std::move(regex), true};
}

}  // namespace muster
