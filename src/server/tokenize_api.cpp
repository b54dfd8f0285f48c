#include "server/tokenize_api.h"

#include <fmt/compile.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "server/json_body.h"

namespace muster {

ApiResult<TokenizeRequest> parse_tokenize(std::string body, const TextListLimits& limits,
                                          Duration deadline_most) {
  TokenizeRequest request;
  bool names_model = false;
  bool has_list = false;
  std::vector<BodyField> fields;
  for (const std::string_view name : {"input", "inputs"}) {
    fields.push_back({name, [&, name](JsonValue& value) -> ApiStatus {
                        if (has_list) {
                          return wrong_field(name, "duplicate_parameter",
                                             "Give the texts once: as 'input' or as 'inputs'.");
                        }
                        has_list = true;
                        return read_texts(value, name, limits, false, request.texts);
                      }});
  }
  fields.push_back({"prompt_name", [&](JsonValue& value) -> ApiStatus {
                      request.prompt_name =
                          MUSTER_TRY(read_text(value, "prompt_name", kNameBytesMost));
                      return Done{};
                    }});
  add_call_fields(fields, request.options, names_model, deadline_most);
  MUSTER_TRY(read_body(std::move(body), fields));
  if (request.texts.empty()) return missing_field("input");
  return request;
}

// Ids are written straight into the body: there may be a million of them.
HttpResponse tokenize_response(const std::string& model, const std::vector<TokenizedText>& texts) {
  constexpr std::size_t kIdBytes = 7;      // about, with its comma
  constexpr std::size_t kFrameBytes = 96;  // of a text
  std::size_t token_count = 0;
  for (const auto& text : texts) token_count += text.ids.size();
  HttpResponse response{.status = 200, .content_type = "application/json", .body = {}};
  auto& body = response.body;
  body.reserve(token_count * kIdBytes + texts.size() * kFrameBytes + 256);
  const auto out = std::back_inserter(body);
  body += R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto& ids = texts[i].ids;
    fmt::format_to(out, FMT_COMPILE(R"({}{{"object":"tokens","index":{},"ids":[)"),
                   i == 0 ? "" : ",", i);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (k != 0) body += ',';
      const fmt::format_int id(ids[k]);
      body.append(id.data(), id.size());
    }
    fmt::format_to(out, FMT_COMPILE(R"(],"count":{},"truncated":{}}})"), ids.size(),
                   texts[i].is_truncated);
  }
  const auto name =
      nlohmann::json(model).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  fmt::format_to(out,
                 FMT_COMPILE(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})"),
                 name, token_count, token_count);
  return response;
}

}  // namespace muster
