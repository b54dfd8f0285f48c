#include "server/openai_embeddings.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "server/call_fields.h"
#include "server/embeddings_answer.h"
#include "server/json_body.h"

namespace muster {
namespace {

using simdjson::ondemand::json_type;

constexpr std::string_view kInputForms =
    "a string, an array of strings, an array of token ids or an array of arrays of token ids";

ApiResult<json_type> type_of(JsonValue& value) {
  json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  return type;
}

ApiError unknown_id(std::string_view what) {
  return wrong_field(
      "input", "invalid_token_ids",
      fmt::format("Invalid 'input': {}. The ids must be those of this model's own tokenizer; with "
                  "langchain-openai set check_embedding_ctx_length=False, so that it sends texts.",
                  what));
}

ApiResult<std::uint32_t> read_id(JsonValue& value) {
  std::uint64_t id = 0;
  if (value.get_uint64().get(id) != simdjson::SUCCESS || id > UINT32_MAX) {
    const auto type = MUSTER_TRY(type_of(value));
    if (type != json_type::number) return wrong_type(value, "input", "token ids");
    return unknown_id("token ids must be whole numbers, 0 or greater");
  }
  return static_cast<std::uint32_t>(id);
}

// Reads the elements of `input`; the first one says what all must be.
class InputReader {
 public:
  InputReader(EmbedCall& call, const EmbeddingsLimits& limits) : call_(call), limits_(limits) {}

  ApiStatus read(JsonValue& value) {
    const auto type = MUSTER_TRY(type_of(value));
    if (type == json_type::string) {
      call_.texts.push_back(MUSTER_TRY(read_text(value, "input", limits_.text_bytes_most)));
      return Done{};
    }
    if (type != json_type::array) return wrong_type(value, "input", kInputForms);
    return read_list(value);
  }

 private:
  ApiStatus read_list(JsonValue& list) {
    simdjson::ondemand::array array;
    if (const auto fault = list.get_array().get(array)) return broken_json(fault);
    std::optional<json_type> first;
    for (auto item : array) {
      JsonValue value;
      if (const auto fault = item.get(value)) return broken_json(fault);
      const auto type = MUSTER_TRY(type_of(value));
      if (first && type != *first) {
        return wrong_type(value, "input", "elements that are all of one kind");
      }
      if (!first && type == json_type::number) call_.ids.emplace_back();
      first = type;
      MUSTER_TRY(type == json_type::number ? add_id(value) : read_element(value, type));
    }
    if (!first) return empty_list("input");
    return Done{};
  }

  ApiStatus read_element(JsonValue& value, json_type type) {
    if (type != json_type::string && type != json_type::array) {
      return wrong_type(value, "input", kInputForms);
    }
    if (call_.texts.size() + call_.ids.size() >= limits_.texts_most) {
      return list_too_long("input", limits_.texts_most);
    }
    if (type == json_type::string) {
      call_.texts.push_back(MUSTER_TRY(read_text(value, "input", limits_.text_bytes_most)));
      return Done{};
    }
    simdjson::ondemand::array array;
    if (const auto fault = value.get_array().get(array)) return broken_json(fault);
    call_.ids.emplace_back();
    for (auto item : array) {
      JsonValue id;
      if (const auto fault = item.get(id)) return broken_json(fault);
      MUSTER_TRY(add_id(id));
    }
    if (call_.ids.back().empty()) return empty_list("input");
    return Done{};
  }

  ApiStatus add_id(JsonValue& value) {
    if (call_.ids.back().size() >= limits_.ids_most) {
      return list_too_long("input", limits_.ids_most);
    }
    call_.ids.back().push_back(MUSTER_TRY(read_id(value)));
    return Done{};
  }

  EmbedCall& call_;
  const EmbeddingsLimits& limits_;
};

// 0 and what is more than the model has are refused by the service, which knows how many that are.
ApiStatus read_dimensions(JsonValue& value, std::optional<std::uint32_t>& dimensions) {
  auto number = read_integer(value, "dimensions", 0, UINT32_MAX);
  if (number) {
    dimensions = static_cast<std::uint32_t>(*number);
    return Done{};
  }
  if (number.error().code != "invalid_value") return number.error();
  return wrong_field("dimensions", "invalid_value",
                     "Invalid 'dimensions': expected an integer from 1 to the dimension of the "
                     "model.");
}

ApiStatus read_format(JsonValue& value, EmbeddingFormat& format) {
  const std::string name = MUSTER_TRY(read_text(value, "encoding_format", kNameBytesMost));
  if (name == "float") {
    format = EmbeddingFormat::Float;
  } else if (name == "base64") {
    format = EmbeddingFormat::Base64;
  } else {
    return wrong_field("encoding_format", "invalid_value",
                       "Invalid 'encoding_format': expected 'float' or 'base64'.");
  }
  return Done{};
}

}  // namespace

ApiResult<EmbeddingsRequest> parse_embeddings(std::string body, const EmbeddingsLimits& limits) {
  EmbeddingsRequest request;
  InputReader input(request.call, limits);
  std::vector<BodyField> fields;
  fields.reserve(16);
  fields.push_back({"input", [&](JsonValue& value) { return input.read(value); }});
  fields.push_back(
      {"encoding_format", [&](JsonValue& value) { return read_format(value, request.format); }});
  fields.push_back({"dimensions", [&](JsonValue& value) {
                      return read_dimensions(value, request.call.dimensions);
                    }});
  fields.push_back({"prompt_name", [&](JsonValue& value) -> ApiStatus {
                      request.call.prompt_name =
                          MUSTER_TRY(read_text(value, "prompt_name", kNameBytesMost));
                      return Done{};
                    }});
  bool names_model = false;
  add_call_fields(fields, request.call.options, names_model, limits.deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (request.call.texts.empty() && request.call.ids.empty()) return missing_field("input");
  if (!names_model) return missing_field("model");
  return request;
}

ApiError embeddings_error(const CallError& error) {
  switch (error.field) {
    case CallField::TokenIds:
      return unknown_id(error.error.message);
    case CallField::Dimensions:
      return wrong_field("dimensions", "invalid_value",
                         fmt::format("Invalid 'dimensions': {}.", error.error.message));
    case CallField::Other:
      break;
  }
  return api_error(error);
}

HttpResponse embeddings_response(EmbedAnswer answer, EmbeddingFormat format,
                                 std::optional<std::uint32_t> dimensions) {
  EmbeddingsAnswer whole(std::move(answer), format, dimensions);
  while (!whole.write(SIZE_MAX)) continue;
  return whole.take();
}

}  // namespace muster
