// The bodies of text-embeddings-inference's API, and its answers.

#include "server/tei_api.h"

#include <fmt/compile.h>

#include <iterator>
#include <utility>
#include <vector>

#include "server/float_text.h"
#include "server/json_body.h"
#include "server/score_api.h"

namespace muster {
namespace {

HttpResponse json_response(std::string body) {
  return {.status = 200, .content_type = "application/json", .body = std::move(body)};
}

BodyField texts_field(std::string_view place, const TextListLimits& limits,
                      std::vector<std::string>& texts) {
  return {key_of(place), [place, &limits, &texts](JsonValue& value) {
            return read_texts(value, place, limits, false, texts);
          }};
}

}  // namespace

ApiResult<TeiEmbedRequest> parse_tei_embed(std::string body, const InputLimits& limits,
                                           Duration deadline_most) {
  TeiEmbedRequest request;
  EmbedCall& call = request.call;
  std::vector<BodyField> fields;
  fields.push_back(
      {"inputs", [&](JsonValue& value) { return read_input(value, "inputs", limits, {}, call); }});
  fields.push_back(flag_field("normalize", request.is_normalized));
  fields.push_back(prompt_field(call.prompt_name));
  fields.push_back(dimensions_field("dimensions", call.dimensions));
  bool names_model = false;
  add_call_fields(fields, call.options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (call.texts.empty() && call.ids.empty()) return missing_field("inputs");
  call.wants_own_length = !request.is_normalized;
  return request;
}

RowSection tei_section() { return {.before = "[", .after = "]"}; }

ApiResult<EmbedCall> parse_tei_similarity(std::string body, const TextListLimits& limits,
                                          Duration deadline_most) {
  EmbedCall call;
  bool has_source = false;
  std::string source;
  bool names_model = false;
  const std::vector<BodyField> inputs{
      {"source_sentence",
       [&](JsonValue& value) -> ApiStatus {
         has_source = true;
         source = MUSTER_TRY(read_text(value, "inputs.source_sentence", limits.text_bytes_most));
         return Done{};
       }},
      texts_field("inputs.sentences", limits, call.texts)};
  const std::vector<BodyField> parameters{
      prompt_field(call.prompt_name, "parameters.prompt_name"),
      truncate_field(call.options, "parameters.truncate"),
      truncation_side_field(call.options, "parameters.truncation_direction")};
  std::vector<BodyField> fields;
  add_call_fields(fields, call.options, names_model, deadline_most);
  fields.push_back(
      {"inputs", [&](JsonValue& value) { return read_object(value, "inputs", inputs); }});
  fields.push_back({"parameters", [&](JsonValue& value) {
                      return read_object(value, "parameters", parameters);
                    }});
  MUSTER_TRY(read_body(std::move(body), fields));
  if (!has_source) return missing_field("inputs.source_sentence");
  if (call.texts.empty()) return missing_field("inputs.sentences");
  if (call.texts.size() >= limits.texts_most)
    return list_too_long("inputs.sentences", limits.texts_most);
  call.texts.insert(call.texts.begin(), std::move(source));
  return call;
}

HttpResponse tei_similarities(const EmbedAnswer& answer) {
  const auto cosines = pair_cosines(answer.rows, answer.dim, 1);
  std::string body = "[";
  append_floats(cosines, body);
  body += ']';
  return json_response(std::move(body));
}

ApiResult<TokenizeCall> parse_tei_tokenize(std::string body, const TextListLimits& limits,
                                           Duration deadline_most) {
  TokenizeCall call{.wants_pieces = true};
  std::vector<BodyField> fields;
  fields.push_back(texts_field("inputs", limits, call.texts));
  fields.push_back(flag_field("add_special_tokens", call.has_special_tokens));
  fields.push_back(prompt_field(call.prompt_name));
  bool names_model = false;
  add_call_fields(fields, call.options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (call.texts.empty()) return missing_field("inputs");
  return call;
}

namespace {

void append_pieces(std::size_t index, const TokenizedText& text, std::string& body) {
  const auto out = std::back_inserter(body);
  body += index == 0 ? "[" : ",[";
  for (std::size_t i = 0; i < text.ids.size(); ++i) {
    fmt::format_to(out, FMT_COMPILE(R"({}{{"id":{},"text":)"), i == 0 ? "" : ",", text.ids[i]);
    append_quoted(text.pieces[i].text, body);
    fmt::format_to(out, FMT_COMPILE(R"(,"special":{},"start":null,"stop":null}})"),
                   text.pieces[i].is_special);
  }
  body += ']';
}

}  // namespace

TokensForm tei_tokens_form() { return {.before = "[", .append = append_pieces, .after = "]"}; }

ApiResult<TokenizeCall> parse_tei_decode(std::string body, const InputLimits& limits,
                                         Duration deadline_most) {
  TokenizeCall call;
  EmbedCall input;
  std::vector<BodyField> fields;
  fields.push_back({"ids", [&](JsonValue& value) -> ApiStatus {
                      MUSTER_TRY(read_input(value, "ids", limits, {}, input));
                      if (input.texts.empty()) return Done{};
                      return wrong_field("ids", "invalid_type",
                                         "Invalid type for 'ids': expected token ids, but got a "
                                         "string instead.");
                    }});
  fields.push_back(flag_field("skip_special_tokens", call.skips_special_tokens));
  bool names_model = false;
  add_call_fields(fields, call.options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (input.ids.empty()) return missing_field("ids");
  call.ids = std::move(input.ids);
  return call;
}

namespace {

void append_text(std::size_t index, const TokenizedText& text, std::string& body) {
  if (index != 0) body += ',';
  append_quoted(text.text, body);
}

}  // namespace

TokensForm tei_texts_form() { return {.before = "[", .append = append_text, .after = "]"}; }

HttpResponse tei_ranks(const RerankAnswer& answer, const RerankRequest& request) {
  std::string body = "[";
  for (const std::size_t index : best_first(answer.scores, request.top_n)) {
    if (body.size() > 1) body += ',';
    body += R"({"index":)" + std::to_string(index);
    if (request.return_documents) {
      body += R"(,"text":)";
      append_quoted(request.call.texts[index], body);
    }
    body += R"(,"score":)";
    append_floats({&answer.scores[index], 1}, body);
    body += '}';
  }
  body += ']';
  return json_response(std::move(body));
}

}  // namespace muster
