// A body of POST /v1/embeddings, and its answer.

#include "server/openai_embeddings.h"

#include <utility>

#include "server/call_fields.h"
#include "server/call_input.h"
#include "server/embedding_type.h"
#include "server/json_body.h"
#include "server/text_purpose.h"

namespace muster {
namespace {

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

// Jina's: a name, or a list of one name.
ApiStatus read_type(JsonValue& value, EmbeddingFormat& format) {
  std::vector<EmbeddingFormat> formats;
  MUSTER_TRY(read_embedding_types(value, "embedding_type", formats));
  if (formats.size() != 1) {
    return wrong_field("embedding_type", "invalid_value",
                       "Invalid 'embedding_type': expected one, since a vector is answered once; "
                       "/v2/embed answers in several.");
  }
  format = formats.front();
  return Done{};
}

void add_jina_fields(std::vector<BodyField>& fields, EmbeddingsRequest& request) {
  fields.push_back({"embedding_type",
                    [&request](JsonValue& value) { return read_type(value, request.format); }});
  fields.push_back({"normalized", [&request](JsonValue& value) -> ApiStatus {
                      request.is_normalized = MUSTER_TRY(read_bool(value, "normalized"));
                      request.call.wants_own_length = !request.is_normalized;
                      return Done{};
                    }});
  for (const std::string_view name : {"task", "input_type"}) {
    fields.push_back(purpose_field(name, request.call.prompts_preferred));
  }
}

}  // namespace

ApiResult<EmbeddingsRequest> parse_embeddings(std::string body, const EmbeddingsLimits& limits) {
  EmbeddingsRequest request;
  EmbedCall& call = request.call;
  const InputLimits input{.texts_most = limits.texts_most,
                          .text_bytes_most = limits.text_bytes_most,
                          .ids_most = limits.ids_most};
  std::vector<BodyField> fields;
  fields.reserve(16);  // within what malloc keeps at hand for a thread
  fields.push_back({"input", [&](JsonValue& value) {
                      return read_input(value, "input", input,
                                        {.takes_ids = true, .takes_objects = true}, call);
                    }});
  fields.push_back(
      {"encoding_format", [&](JsonValue& value) { return read_format(value, request.format); }});
  fields.push_back(dimensions_field("dimensions", call.dimensions));
  fields.push_back(dimensions_field("output_dimension", call.dimensions));
  fields.push_back(prompt_field(call.prompt_name));
  add_jina_fields(fields, request);
  bool names_model = false;
  add_call_fields(fields, call.options, names_model, limits.deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (call.texts.empty() && call.ids.empty()) return missing_field("input");
  if (!names_model) return missing_field("model");
  return request;
}

std::vector<RowSection> openai_sections(const EmbedAnswer& answer, EmbeddingFormat format) {
  std::vector<RowSection> sections(1);
  RowSection& section = sections.front();
  section.format = format;
  if (format == EmbeddingFormat::Raw) return sections;
  section.is_items = true;
  section.before = R"({"object":"list","data":[)";
  constexpr std::size_t kUsageBytes = 96;  // with two numbers, and what stands before the model
  section.after.reserve(answer.model.size() + kUsageBytes);
  section.after.append(R"(],"model":)");
  append_quoted(answer.model, section.after);
  const std::string tokens = std::to_string(answer.token_count);
  section.after.append(R"(,"usage":{"prompt_tokens":)").append(tokens);
  section.after.append(R"(,"total_tokens":)").append(tokens).append("}}");
  return sections;
}

}  // namespace muster
