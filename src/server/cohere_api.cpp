// The bodies of Cohere's API, and its answers.

#include "server/cohere_api.h"

#include <fmt/format.h>

#include <utility>

#include "server/embedding_type.h"
#include "server/float_text.h"
#include "server/json_body.h"
#include "server/text_purpose.h"

namespace muster {
namespace {

ApiStatus read_truncate(JsonValue& value, CallOptions& options) {
  const std::string word = MUSTER_TRY(read_text(value, "truncate", kNameBytesMost));
  if (word == "NONE") {
    options.truncate = false;
  } else if (word == "START") {
    options.truncate = true;
    options.truncation_side = TruncationSide::Left;
  } else if (word == "END") {
    options.truncate = true;
  } else {
    return wrong_field("truncate", "invalid_value",
                       "Invalid 'truncate': expected 'NONE', 'START' or 'END'.");
  }
  return Done{};
}

std::string meta_json(std::uint64_t token_count) {
  return fmt::format(
      R"("meta":{{"api_version":{{"version":"2"}},"billed_units":{{"input_tokens":{0}}},)"
      R"("tokens":{{"input_tokens":{0}}}}})",
      token_count);
}

}  // namespace

ApiResult<CohereEmbedRequest> parse_cohere_embed(std::string body, const TextListLimits& limits,
                                                 Duration deadline_most) {
  CohereEmbedRequest request;
  EmbedCall& call = request.call;
  std::vector<BodyField> fields;
  fields.push_back({"texts", [&](JsonValue& value) {
                      return read_texts(value, "texts", limits, false, call.texts);
                    }});
  fields.push_back(purpose_field("input_type", call.prompts_preferred));
  fields.push_back({"embedding_types", [&](JsonValue& value) {
                      return read_embedding_types(value, "embedding_types", request.formats);
                    }});
  fields.push_back(dimensions_field("output_dimension", call.dimensions));
  fields.push_back(
      {"truncate", [&](JsonValue& value) { return read_truncate(value, call.options); }});
  bool names_model = false;
  add_caller_fields(fields, call.options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (call.texts.empty()) return missing_field("texts");
  if (!names_model) return missing_field("model");
  if (request.formats.empty()) request.formats.push_back(EmbeddingFormat::Float);
  return request;
}

std::vector<RowSection> cohere_sections(const EmbedAnswer& answer,
                                        const std::vector<EmbeddingFormat>& formats,
                                        const std::string& id) {
  std::vector<RowSection> sections;
  for (const EmbeddingFormat format : formats) {
    RowSection section{.format = format, .after = "]"};
    if (sections.empty()) {
      section.before = R"({"id":)";
      append_quoted(id, section.before);
      section.before += R"(,"embeddings":{)";
    } else {
      section.before = ",";
    }
    section.before += fmt::format(R"("{}":[)", embedding_type_name(format));
    sections.push_back(std::move(section));
  }
  sections.back().after +=
      "}," + meta_json(answer.token_count) + R"(,"response_type":"embeddings_by_type"})";
  return sections;
}

HttpResponse cohere_ranking(const RerankAnswer& answer, const RerankRequest& request,
                            const std::string& id) {
  HttpResponse response{.status = 200, .content_type = "application/json", .body = {}};
  std::string& body = response.body;
  body = R"({"id":)";
  append_quoted(id, body);
  body += R"(,"results":[)";
  bool is_first = true;
  for (const std::size_t index : best_first(answer.scores, request.top_n)) {
    if (!std::exchange(is_first, false)) body += ',';
    body += R"({"index":)" + std::to_string(index) + R"(,"relevance_score":)";
    append_floats({&answer.scores[index], 1}, body);
    if (request.return_documents) {
      body += R"(,"document":{"text":)";
      append_quoted(request.call.texts[index], body);
      body += '}';
    }
    body += '}';
  }
  body += "]," + meta_json(answer.token_count) + "}";
  return response;
}

}  // namespace muster
