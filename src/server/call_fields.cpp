// A field is a name and a reader that writes straight into the options of the call, so no tree of
// the body is ever built. Lists are counted while they are read: one that is too long is refused at
// its first surplus element. The messages are worded as OpenAI words them, because clients match on
// them. `user` is checked and then ignored.

#include "server/call_fields.h"

#include <fmt/format.h>

#include <chrono>

namespace muster {
namespace {

ApiStatus read_lane(JsonValue& value, CallOptions& options) {
  const std::string name = MUSTER_TRY(read_text(value, "lane", kNameBytesMost));
  if (name == "interactive") {
    options.lane = Lane::Interactive;
  } else if (name == "bulk") {
    options.lane = Lane::Bulk;
  } else {
    return wrong_field("lane", "invalid_value",
                       "Invalid 'lane': expected 'interactive' or 'bulk'.");
  }
  return Done{};
}

ApiStatus read_side(JsonValue& value, std::string_view place, CallOptions& options) {
  const std::string name = MUSTER_TRY(read_text(value, place, kNameBytesMost));
  if (name == "Left" || name == "left") {
    options.truncation_side = TruncationSide::Left;
  } else if (name == "Right" || name == "right") {
    options.truncation_side = TruncationSide::Right;
  } else {
    return wrong_field(place, "invalid_value",
                       fmt::format("Invalid '{}': expected 'Left' or 'Right'.", place));
  }
  return Done{};
}

}  // namespace

void add_call_fields(std::vector<BodyField>& fields, CallOptions& options, bool& names_model,
                     Duration deadline_most) {
  add_caller_fields(fields, options, names_model, deadline_most);
  fields.push_back(truncate_field(options));
  fields.push_back(truncation_side_field(options));
}

BodyField truncate_field(CallOptions& options, std::string_view place) {
  return {key_of(place), [place, &options](JsonValue& value) -> ApiStatus {
            options.truncate = MUSTER_TRY(read_bool(value, place));
            return Done{};
          }};
}

BodyField truncation_side_field(CallOptions& options, std::string_view place) {
  return {key_of(place), [place, &options](JsonValue& value) -> ApiStatus {
            return read_side(value, place, options);
          }};
}

void add_caller_fields(std::vector<BodyField>& fields, CallOptions& options, bool& names_model,
                       Duration deadline_most) {
  fields.push_back({"model", [&](JsonValue& value) -> ApiStatus {
                      names_model = true;
                      options.model = MUSTER_TRY(read_text(value, "model", kNameBytesMost));
                      return Done{};
                    }});
  fields.push_back({"user", [](JsonValue& value) -> ApiStatus {
                      MUSTER_TRY(read_text(value, "user", kNameBytesMost));
                      return Done{};
                    }});
  fields.push_back({"lane", [&options](JsonValue& value) { return read_lane(value, options); }});
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_most).count();
  fields.push_back({"timeout_ms", [&options, most](JsonValue& value) -> ApiStatus {
                      const auto number = MUSTER_TRY(
                          read_integer(value, "timeout_ms", 1, static_cast<std::uint64_t>(most)));
                      options.deadline = std::chrono::milliseconds(number);
                      return Done{};
                    }});
}

BodyField flag_field(std::string_view place, bool& into) {
  return {key_of(place), [place, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_bool(value, place));
            return Done{};
          }};
}

BodyField name_field(std::string_view name, std::string& into) {
  return {name, [name, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_text(value, name, kNameBytesMost));
            return Done{};
          }};
}

BodyField none_field(std::string_view place) {
  return {key_of(place),
          [place](JsonValue& /*value*/) -> ApiStatus { return unsupported_value(place, "null"); }};
}

BodyField prompt_field(std::optional<std::string>& into, std::string_view place) {
  return {key_of(place), [place, &into](JsonValue& value) -> ApiStatus {
            into = MUSTER_TRY(read_text(value, place, kNameBytesMost));
            return Done{};
          }};
}

// 0 and what is more than the model has are refused by the service, which knows how many that are.
BodyField dimensions_field(std::string_view name, std::optional<std::uint32_t>& into) {
  return {name, [name, &into](JsonValue& value) -> ApiStatus {
            auto number = read_integer(value, name, 0, UINT32_MAX);
            if (number) {
              into = static_cast<std::uint32_t>(*number);
              return Done{};
            }
            if (number.error().code != "invalid_value") return number.error();
            return wrong_field(name, "invalid_value",
                               fmt::format("Invalid '{}': expected an integer from 1 to the "
                                           "dimension of the model.",
                                           name));
          }};
}

ApiError missing_field(std::string_view name) {
  return wrong_field(name, "missing_required_parameter",
                     fmt::format("Missing required parameter: '{}'.", name));
}

ApiError unsupported_value(std::string_view name, std::string_view expected) {
  return wrong_field(name, "unsupported_value",
                     fmt::format("Unsupported '{}': expected {}.", name, expected));
}

ApiError list_too_long(std::string_view name, std::uint64_t most) {
  return wrong_field(name, "array_above_max_length",
                     fmt::format("Invalid '{}': array too long. Expected an array with maximum "
                                 "length {}, but got a longer one.",
                                 name, most));
}

ApiError empty_list(std::string_view name) {
  return wrong_field(name, "empty_array",
                     fmt::format("Invalid '{}': empty array. Expected an array with minimum "
                                 "length 1, but got an empty array instead.",
                                 name));
}

// A document object with any field but `text` is refused: ignoring a title or a body would rank a
// text that the client did not mean.
ApiResult<std::string> read_document(JsonValue& value, std::string_view name,
                                     const TextListLimits& limits, bool takes_objects) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (!takes_objects || type != simdjson::ondemand::json_type::object) {
    return read_text(value, name, limits.text_bytes_most);
  }
  simdjson::ondemand::object object;
  if (const auto fault = value.get_object().get(object)) return broken_json(fault);
  std::optional<std::string> text;
  for (auto item : object) {
    simdjson::ondemand::field field;
    if (const auto fault = std::move(item).get(field)) return broken_json(fault);
    std::string_view key;
    if (const auto fault = field.unescaped_key().get(key)) return broken_json(fault);
    if (key != "text" || text) {
      return wrong_field(
          name, "invalid_value",
          fmt::format("Invalid '{}': a document may have the field text alone.", name));
    }
    JsonValue inner = field.value();
    text = MUSTER_TRY(read_text(inner, name, limits.text_bytes_most));
  }
  if (!text) return missing_field("text");
  return *std::move(text);
}

ApiStatus read_texts(JsonValue& value, std::string_view name, const TextListLimits& limits,
                     bool takes_objects, std::vector<std::string>& texts) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (type == simdjson::ondemand::json_type::string) {
    texts.push_back(MUSTER_TRY(read_text(value, name, limits.text_bytes_most)));
    return Done{};
  }
  simdjson::ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) {
    return wrong_type(value, name, "a string or an array of strings");
  }
  for (auto item : array) {
    JsonValue element;
    if (const auto fault = item.get(element)) return broken_json(fault);
    if (texts.size() >= limits.texts_most) return list_too_long(name, limits.texts_most);
    texts.push_back(MUSTER_TRY(read_document(element, name, limits, takes_objects)));
  }
  if (texts.empty()) return empty_list(name);
  return Done{};
}

}  // namespace muster
