#include "server/tokenize_api.h"

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

HttpResponse tokenize_response(const std::string& model, const std::vector<TokenizedText>& texts) {
  using Json = nlohmann::ordered_json;
  Json data = Json::array();
  std::uint64_t token_count = 0;
  for (const TokenizedText& text : texts) {
    token_count += text.ids.size();
    data.push_back({{"object", "tokens"},
                    {"index", data.size()},
                    {"ids", text.ids},
                    {"count", text.ids.size()},
                    {"truncated", text.is_truncated}});
  }
  const Json body{{"object", "list"},
                  {"data", std::move(data)},
                  {"model", model},
                  {"usage", {{"prompt_tokens", token_count}, {"total_tokens", token_count}}}};
  return {.status = 200,
          .content_type = "application/json",
          .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

}  // namespace muster
