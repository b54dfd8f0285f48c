// One reader for the bodies of Cohere, Jina and TEI: their names differ but do not collide, and
// documents given under two names are refused. The answer is written as text, not through a JSON
// tree: a score is a float32, and its shortest decimal is not that of the same value as a double.
// The sort is stable, so equal scores keep the order of their documents.

#include "server/rerank_api.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "server/float_text.h"
#include "server/json_body.h"

namespace muster {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::vector<std::size_t> best_first(const std::vector<float>& scores,
                                    std::optional<std::uint64_t> top_n) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return scores[left] > scores[right];
  });
  order.resize(std::min<std::uint64_t>(top_n.value_or(UINT64_MAX), order.size()));
  return order;
}

ApiResult<RerankRequest> parse_rerank(std::string body, const TextListLimits& limits,
                                      Duration deadline_most) {
  RerankRequest request;
  bool has_query = false;
  bool names_model = false;
  bool has_list = false;
  const auto read_list = [&](std::string_view name, JsonValue& value) -> ApiStatus {
    if (has_list) {
      return wrong_field(name, "duplicate_parameter",
                         "Give the documents once: as 'documents' or as 'texts'.");
    }
    has_list = true;
    request.is_tei = name == "texts";
    return read_texts(value, name, limits, true, request.call.texts);
  };
  std::vector<BodyField> fields;
  fields.push_back({"query", [&](JsonValue& value) -> ApiStatus {
                      has_query = true;
                      request.call.query =
                          MUSTER_TRY(read_text(value, "query", limits.text_bytes_most));
                      return Done{};
                    }});
  for (const std::string_view name : {"documents", "texts"}) {
    fields.push_back({name, [&, name](JsonValue& value) { return read_list(name, value); }});
  }
  fields.push_back({"top_n", [&](JsonValue& value) -> ApiStatus {
                      request.top_n = MUSTER_TRY(read_integer(value, "top_n", 1, UINT32_MAX));
                      return Done{};
                    }});
  fields.push_back(flag_field("return_documents", request.return_documents));
  fields.push_back(flag_field("return_text", request.return_documents));
  fields.push_back(flag_field("raw_scores", request.call.raw_scores));
  add_call_fields(fields, request.call.options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (!has_query) return missing_field("query");
  if (request.call.texts.empty()) return missing_field("documents");
  return request;
}

HttpResponse rerank_response(const RerankAnswer& answer, const RerankRequest& request) {
  if (!are_finite(answer.scores)) {
    return error_response(api_error(500, "The model gave a score that is not finite."));
  }
  const auto order = best_first(answer.scores, request.top_n);
  HttpResponse response{.status = 200, .content_type = "application/json", .body = {}};
  std::string& body = response.body;
  body = R"({"model":)" + quoted(answer.model) + R"(,"results":[)";
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t index = order[place];
    if (place != 0) body += ',';
    body += R"({"index":)" + std::to_string(index) + R"(,"relevance_score":)";
    append_floats({&answer.scores[index], 1}, body);
    if (request.return_documents) {
      body += R"(,"document":{"text":)" + quoted(request.call.texts[index]) + '}';
    }
    body += '}';
  }
  const std::string tokens = std::to_string(answer.token_count);
  body += R"(],"usage":{"prompt_tokens":)" + tokens + R"(,"total_tokens":)" + tokens + "}}";
  return response;
}

}  // namespace muster
