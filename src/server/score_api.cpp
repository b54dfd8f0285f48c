// The body of vLLM's /score, and its answer.

#include "server/score_api.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "server/float_text.h"
#include "server/json_body.h"
#include "server/rows_answer.h"

namespace muster {
namespace {

constexpr std::array<std::string_view, 3> kFirstNames{"text_1", "data_1", "queries"};
constexpr std::array<std::string_view, 4> kSecondNames{"text_2", "data_2", "documents", "items"};

BodyField side_field(std::string_view name, const TextListLimits& limits,
                     std::vector<std::string>& texts) {
  return {name, [name, &limits, &texts](JsonValue& value) -> ApiStatus {
            if (texts.empty()) return read_texts(value, name, limits, false, texts);
            return wrong_field(
                name, "duplicate_parameter",
                fmt::format("'{}': these texts are given under another name, too.", name));
          }};
}

double cosine(std::span<const float> left, std::span<const float> right) {
  double product = 0;
  double left_sum = 0;
  double right_sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    product += static_cast<double>(left[i]) * right[i];
    left_sum += static_cast<double>(left[i]) * left[i];
    right_sum += static_cast<double>(right[i]) * right[i];
  }
  const double lengths = std::sqrt(left_sum) * std::sqrt(right_sum);
  return lengths > 0 ? product / lengths : 0;
}

}  // namespace

ApiResult<ScoreRequest> parse_score(std::string body, const TextListLimits& limits,
                                    Duration deadline_most) {
  ScoreRequest request;
  std::vector<BodyField> fields;
  for (const auto name : kFirstNames) fields.push_back(side_field(name, limits, request.first));
  for (const auto name : kSecondNames) fields.push_back(side_field(name, limits, request.second));
  fields.push_back({"use_activation", [&](JsonValue& value) -> ApiStatus {
                      const bool is_wanted = MUSTER_TRY(read_bool(value, "use_activation"));
                      request.raw_scores = !is_wanted;
                      return Done{};
                    }});
  bool names_model = false;
  add_call_fields(fields, request.options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (request.first.empty()) return missing_field("text_1");
  if (request.second.empty()) return missing_field("text_2");
  if (request.first.size() != 1 && request.first.size() != request.second.size()) {
    return wrong_field("text_2", "invalid_value",
                       fmt::format("Invalid 'text_2': expected one text for each of the {} of the "
                                   "first side, but got {}.",
                                   request.first.size(), request.second.size()));
  }
  return request;
}

std::vector<float> pair_cosines(std::span<const float> rows, std::size_t dim,
                                std::size_t first_count) {
  const std::size_t second_count = rows.size() / dim - first_count;
  const auto row = [&](std::size_t index) { return rows.subspan(index * dim, dim); };
  std::vector<float> cosines;
  for (std::size_t i = 0; i < second_count; ++i) {
    const std::size_t first = first_count == 1 ? 0 : i;
    cosines.push_back(static_cast<float>(cosine(row(first), row(first_count + i))));
  }
  return cosines;
}

HttpResponse score_response(const std::string& id, std::int64_t created, const std::string& model,
                            std::span<const float> scores, std::uint64_t token_count) {
  HttpResponse response{.status = 200, .content_type = "application/json", .body = {}};
  std::string& body = response.body;
  body = R"({"id":)";
  append_quoted(id, body);
  body += fmt::format(R"(,"object":"list","created":{},"model":)", created);
  append_quoted(model, body);
  body += R"(,"data":[)";
  for (std::size_t i = 0; i < scores.size(); ++i) {
    body += fmt::format(R"({}{{"index":{},"object":"score","score":)", i == 0 ? "" : ",", i);
    append_floats(scores.subspan(i, 1), body);
    body += '}';
  }
  body += fmt::format(R"(],"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", token_count);
  return response;
}

}  // namespace muster
