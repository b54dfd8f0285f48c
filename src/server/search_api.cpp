// The body of a search, and its answer.

#include "server/search_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "server/json_body.h"
#include "server/rows_answer.h"

namespace muster {
namespace {

// What others that rank by marginal relevance offer for a hit is 4 to 5.
constexpr std::uint64_t kCandidatesOfAHit = 5;
constexpr double kLambdaDefault = 0.5;  // as near to the query as far from each other
constexpr std::uint64_t kFilterBytesMost = 4096;

// true, false, or a lambda.
ApiStatus read_mmr(JsonValue& value, RankOptions& rank) {
  simdjson::ondemand::json_type type{};
  if (const auto fault = value.type().get(type)) return broken_json(fault);
  if (type == simdjson::ondemand::json_type::number) {
    rank.mmr_lambda = MUSTER_TRY(read_number(value, "mmr", 0, 1));
    return Done{};
  }
  bool is_on = false;
  if (value.get_bool().get(is_on) != simdjson::SUCCESS) {
    return wrong_type(value, "mmr", "true, false or a number from 0 to 1");
  }
  if (is_on) rank.mmr_lambda = kLambdaDefault;
  return Done{};
}

// What a body has said so far that only counts once it is whole.
struct SearchFields {
  std::optional<std::uint64_t> count = {};
  std::optional<std::uint64_t> candidate_count = {};
};

ApiStatus settle_counts(const SearchFields& given, SearchRequest& request) {
  RankOptions& rank = request.rank;
  rank.count = given.count.value_or(rank.count);
  if (given.candidate_count && !rank.mmr_lambda) {
    return wrong_field("mmr_candidates", "invalid_value",
                       "Invalid 'mmr_candidates': it is for 'mmr', which is not on.");
  }
  if (given.candidate_count && *given.candidate_count < rank.count) {
    return wrong_field("mmr_candidates", "invalid_value",
                       "Invalid 'mmr_candidates': expected at least as many as hits.");
  }
  rank.mmr_candidate_count =
      given.candidate_count.value_or(std::min(kHitsMost, kCandidatesOfAHit * rank.count));
  const auto of_a_query = rank.mmr_lambda ? rank.mmr_candidate_count : rank.count;
  if (of_a_query * request.queries.size() <= kHitsOfARequestMost) return Done{};
  return wrong_field(
      "k", "invalid_value",
      fmt::format("Invalid 'k': at most {} hits and candidates of a request, and {} queries would "
                  "have {} each.",
                  with_thousands(kHitsOfARequestMost), request.queries.size(), of_a_query));
}

}  // namespace

ApiResult<SearchRequest> parse_search(std::string body, const TextListLimits& limits,
                                      Duration deadline_most) {
  SearchRequest request;
  SearchFields given;
  std::vector<BodyField> fields;
  const auto read_queries = [&](std::string_view name, JsonValue& value) -> ApiStatus {
    if (!request.queries.empty()) {
      return wrong_field(name, "duplicate_parameter",
                         "Give the questions once: as 'query' or as 'queries'.");
    }
    if (name == "queries") return read_texts(value, name, limits, false, request.queries);
    request.queries.push_back(MUSTER_TRY(read_text(value, name, limits.text_bytes_most)));
    return Done{};
  };
  for (const std::string_view name : {"query", "queries"}) {
    fields.push_back({name, [&, name](JsonValue& value) { return read_queries(name, value); }});
  }
  const auto read_count = [&](std::string_view name, JsonValue& value) -> ApiStatus {
    if (given.count) {
      return wrong_field(name, "duplicate_parameter", "Give it once: as 'k' or as 'top_k'.");
    }
    given.count = MUSTER_TRY(read_integer(value, name, 1, kHitsMost));
    return Done{};
  };
  for (const std::string_view name : {"k", "top_k"}) {
    fields.push_back({name, [&, name](JsonValue& value) { return read_count(name, value); }});
  }
  fields.push_back({"mmr_candidates", [&](JsonValue& value) -> ApiStatus {
                      given.candidate_count =
                          MUSTER_TRY(read_integer(value, "mmr_candidates", 1, kHitsMost));
                      return Done{};
                    }});
  fields.push_back({"mmr", [&](JsonValue& value) { return read_mmr(value, request.rank); }});
  fields.push_back({"min_score", [&](JsonValue& value) -> ApiStatus {
                      request.rank.score_least = MUSTER_TRY(read_number(value, "min_score", -1, 1));
                      return Done{};
                    }});
  fields.push_back({"filter", [&](JsonValue& value) -> ApiStatus {
                      request.filter = MUSTER_TRY(read_text(value, "filter", kFilterBytesMost));
                      return Done{};
                    }});
  fields.push_back(name_field("index", request.index));
  fields.push_back(prompt_field(request.prompt_name));
  add_call_fields(fields, request.options, request.names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (request.queries.empty()) return missing_field("query");
  MUSTER_TRY(settle_counts(given, request));
  return request;
}

SearchAnswer::SearchAnswer(const ServedCorpus& corpus, Head head, QueryHits hits)
    : corpus_(corpus), head_(std::move(head)), hits_(std::move(hits)) {
  body_ = R"({"index":)";
  append_quoted(head_.index, body_);
  body_ += R"(,"model":)";
  append_quoted(head_.model, body_);
  body_ += R"(,"results":[)";
}

// A line of the index has what is written of a hit, in about as many bytes; it is there once as a
// line, once as what was read of it, and once in the body.
std::uint64_t SearchAnswer::size_most() const {
  constexpr std::uint64_t kCopies = 3;
  constexpr std::uint64_t kFrame = 128;
  std::uint64_t size = kFrame;
  for (const auto& query : head_.queries) size += query.size() + kFrame;
  std::uint64_t longest = 0;
  for (const auto& of_query : hits_) {
    for (const auto& hit : of_query) {
      const auto line = corpus_.corpus->index().size_of(hit.row);
      size += line + kFrame;
      longest = std::max(longest, line);
    }
  }
  return size + kCopies * longest;
}

bool SearchAnswer::write(std::size_t byte_count) {
  const std::size_t end = body_.size() + byte_count;
  for (; next_query_ < hits_.size(); ++next_query_, next_hit_ = 0) {
    if (next_hit_ == 0) {
      body_ += next_query_ == 0 ? R"({"query":)" : R"(,{"query":)";
      append_quoted(head_.queries[next_query_], body_);
      body_ += R"(,"hits":[)";
    }
    while (next_hit_ < hits_[next_query_].size()) {
      if (!write_hit()) return true;
      if (body_.size() >= end) return false;
    }
    body_ += "]}";
  }
  body_ +=
      fmt::format(R"(],"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", head_.token_count);
  return true;
}

bool SearchAnswer::write_hit() {
  const auto& hit = hits_[next_query_][next_hit_];
  const auto entry = corpus_.corpus->index().entry(hit.row);
  has_failed_ = !entry;
  if (!entry) return false;
  if (next_hit_++ > 0) body_ += ',';
  body_ += fmt::format(R"({{"row":{},"score":{})", hit.row, hit.score);
  if (!entry->id.empty()) {
    body_ += R"(,"id":)";
    append_quoted(entry->id, body_);
  }
  body_ += R"(,"text":)";
  append_quoted(entry->text, body_);
  if (!entry->fields.empty()) body_ += R"(,"fields":)" + entry->fields;
  body_ += '}';
  return true;
}

ApiResult<HttpResponse> SearchAnswer::take() {
  if (has_failed_) {
    return api_error(503, fmt::format("The index {} was written into since the server started, "
                                      "which has to be started again",
                                      head_.index));
  }
  return HttpResponse{.status = 200, .content_type = "application/json", .body = std::move(body_)};
}

}  // namespace muster
