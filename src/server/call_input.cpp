// What is to be embedded, as a body has it.

#include "server/call_input.h"

#include <fmt/format.h>

#include <optional>

#include "server/call_fields.h"

namespace muster {
namespace {

using simdjson::ondemand::json_type;

constexpr std::string_view kTextForms = "a string or an array of strings";
constexpr std::string_view kAllForms =
    "a string, an array of strings, an array of token ids or an array of arrays of token ids";

ApiResult<json_type> type_of(JsonValue& value) {
  json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  return type;
}

// Reads the elements of the field; the first one says what all must be.
class InputReader {
 public:
  InputReader(std::string_view name, const InputLimits& limits, InputForms forms, EmbedCall& call)
      : name_(name), limits_(limits), forms_(forms), call_(call) {}

  ApiStatus read(JsonValue& value) {
    const auto type = MUSTER_TRY(type_of(value));
    if (type == json_type::string) {
      call_.texts.push_back(MUSTER_TRY(read_text(value, name_, limits_.text_bytes_most)));
      return Done{};
    }
    if (type != json_type::array) return wrong_type(value, name_, form_words());
    return read_list(value);
  }

 private:
  std::string_view form_words() const { return forms_.takes_ids ? kAllForms : kTextForms; }

  ApiStatus read_list(JsonValue& list) {
    simdjson::ondemand::array array;
    if (const auto fault = list.get_array().get(array)) return broken_json(fault);
    std::optional<json_type> first;
    for (auto item : array) {
      JsonValue value;
      if (const auto fault = item.get(value)) return broken_json(fault);
      const auto type = MUSTER_TRY(type_of(value));
      if (first && type != *first) {
        return wrong_type(value, name_, "elements that are all of one kind");
      }
      const bool is_id = type == json_type::number && forms_.takes_ids;
      if (!first && is_id) call_.ids.emplace_back();
      first = type;
      MUSTER_TRY(is_id ? add_id(value) : read_element(value, type));
    }
    if (!first) return empty_list(name_);
    return Done{};
  }

  ApiStatus read_element(JsonValue& value, json_type type) {
    const bool is_object = type == json_type::object && forms_.takes_objects;
    const bool is_ids = type == json_type::array && forms_.takes_ids;
    if (type != json_type::string && !is_object && !is_ids) {
      return wrong_type(value, name_, form_words());
    }
    if (call_.texts.size() + call_.ids.size() >= limits_.texts_most) {
      return list_too_long(name_, limits_.texts_most);
    }
    if (is_ids) return read_ids(value);
    const TextListLimits limits{.texts_most = limits_.texts_most,
                                .text_bytes_most = limits_.text_bytes_most};
    call_.texts.push_back(MUSTER_TRY(read_document(value, name_, limits, is_object)));
    return Done{};
  }

  ApiStatus read_ids(JsonValue& value) {
    simdjson::ondemand::array array;
    if (const auto fault = value.get_array().get(array)) return broken_json(fault);
    call_.ids.emplace_back();
    for (auto item : array) {
      JsonValue id;
      if (const auto fault = item.get(id)) return broken_json(fault);
      MUSTER_TRY(add_id(id));
    }
    if (call_.ids.back().empty()) return empty_list(name_);
    return Done{};
  }

  ApiStatus add_id(JsonValue& value) {
    if (call_.ids.back().size() >= limits_.ids_most) {
      return list_too_long(name_, limits_.ids_most);
    }
    call_.ids.back().push_back(MUSTER_TRY(read_id(value)));
    return Done{};
  }

  ApiResult<std::uint32_t> read_id(JsonValue& value) const {
    const auto id = whole_number(value);
    if (!id || id->is_negative || id->magnitude > UINT32_MAX) {
      const auto type = MUSTER_TRY(type_of(value));
      if (type != json_type::number) return wrong_type(value, name_, "token ids");
      return unknown_ids(name_, "token ids must be whole numbers, 0 or greater");
    }
    return static_cast<std::uint32_t>(id->magnitude);
  }

  std::string_view name_;
  const InputLimits& limits_;
  const InputForms forms_;
  EmbedCall& call_;
};

}  // namespace

ApiStatus read_input(JsonValue& value, std::string_view name, const InputLimits& limits,
                     InputForms forms, EmbedCall& call) {
  return InputReader(name, limits, forms, call).read(value);
}

ApiError unknown_ids(std::string_view name, std::string_view what) {
  return wrong_field(
      name, "invalid_token_ids",
      fmt::format("Invalid '{}': {}. The ids must be those of this model's own tokenizer; with "
                  "langchain-openai set check_embedding_ctx_length=False, so that it sends texts.",
                  name, what));
}

}  // namespace muster
