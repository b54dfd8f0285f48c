// The body may name its texts as OpenAI or as TEI does, but only once. A long list makes a long
// answer, so it is a form that is filled a part at a time: `before`, one piece for each text,
// `after`. The ids go into the body as text at once, without a JSON tree.

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

namespace {

// Ids are written straight into the body: there may be a million of them.
void append_ids(std::size_t index, const TokenizedText& text, std::string& body) {
  const auto out = std::back_inserter(body);
  fmt::format_to(out, FMT_COMPILE(R"({}{{"object":"tokens","index":{},"ids":[)"),
                 index == 0 ? "" : ",", index);
  for (std::size_t k = 0; k < text.ids.size(); ++k) {
    if (k != 0) body += ',';
    const fmt::format_int id(text.ids[k]);
    body.append(id.data(), id.size());
  }
  fmt::format_to(out, FMT_COMPILE(R"(],"count":{},"truncated":{}}})"), text.ids.size(),
                 text.is_truncated);
}

}  // namespace

TokensForm tokenize_form(const std::string& model, std::size_t token_count) {
  const auto name =
      nlohmann::json(model).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return {.before = R"({"object":"list","data":[)",
          .append = append_ids,
          .after = fmt::format(
              FMT_COMPILE(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})"),
              name, token_count, token_count)};
}

}  // namespace muster
