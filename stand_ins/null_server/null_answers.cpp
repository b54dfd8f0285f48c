// Bodies with the fields that clients of these APIs insist on, and no more.
#include "null_server/null_answers.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

namespace muster {
namespace {

constexpr std::uint64_t kTokensMost = 100'000;  // of a stream

std::uint64_t word_count(std::string_view text) {
  return 1 + static_cast<std::uint64_t>(std::ranges::count(text, ' '));
}

// A text, or a list of texts or token ids.
void count_items(const simdjson::dom::element& json, const char* name, NullRequest& request) {
  simdjson::dom::array items;
  if (json[name].get(items) != simdjson::SUCCESS) return;
  request.item_count = items.size();
}

std::string usage(const NullRequest& request, bool is_generation) {
  const auto output = is_generation ? request.output_tokens : 0;
  return fmt::format(R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}})",
                     request.input_tokens, output, request.input_tokens + output);
}

std::string_view object_name(const NullRequest& request, bool is_stream) {
  if (request.kind == NullRequest::Kind::Completions) return "text_completion";
  return is_stream ? "chat.completion.chunk" : "chat.completion";
}

// "choices" is given with its brackets; `rest` begins with a comma or is empty.
std::string event(const NullRequest& request, std::string_view choices, std::string_view rest) {
  return fmt::format(
      "data: {{\"id\":\"null-1\",\"object\":\"{}\",\"created\":0,\"model\":\"null\","
      "\"choices\":{}{}}}\n\n",
      object_name(request, true), choices, rest);
}

std::string generation_body(const NullRequest& request) {
  std::string text;
  for (std::uint64_t i = 0; i < request.output_tokens; ++i) text += " word";
  const auto choice =
      request.kind == NullRequest::Kind::Chat
          ? fmt::format(
                R"({{"index":0,"message":{{"role":"assistant","content":"{}"}},"finish_reason":"length"}})",
                text)
          : fmt::format(R"({{"index":0,"text":"{}","finish_reason":"length"}})", text);
  return fmt::format(
      R"({{"id":"null-1","object":"{}","created":0,"model":"null","choices":[{}],"usage":{}}})",
      object_name(request, false), choice, usage(request, true));
}

}  // namespace

NullRequest read_null_request(std::string_view path, std::string_view body) {
  NullRequest request;
  using Kind = NullRequest::Kind;
  if (path == "/v1/models") request.kind = Kind::Models;
  if (path == "/v1/embeddings") request.kind = Kind::Embeddings;
  if (path == "/v1/rerank" || path == "/rerank") request.kind = Kind::Rerank;
  if (path == "/v1/chat/completions") request.kind = Kind::Chat;
  if (path == "/v1/completions") request.kind = Kind::Completions;
  if (request.kind == Kind::Plain || request.kind == Kind::Models) return request;
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(body.data(), body.size()).get(json) != simdjson::SUCCESS) return request;
  request.input_tokens = word_count(body);
  count_items(json, request.kind == Kind::Rerank ? "documents" : "input", request);
  std::uint64_t tokens = 0;
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    if (json[name].get(tokens) == simdjson::SUCCESS) {
      request.output_tokens = std::clamp<std::uint64_t>(tokens, 1, kTokensMost);
    }
  }
  bool is_stream = false;
  request.is_stream = json["stream"].get(is_stream) == simdjson::SUCCESS && is_stream;
  return request;
}

std::string null_body(const NullRequest& request) {
  std::string items;
  switch (request.kind) {
    case NullRequest::Kind::Plain:
      return "ok\n";
    case NullRequest::Kind::Models:
      return R"({"object":"list","data":[{"id":"null","object":"model","created":0,"owned_by":"muster","max_model_len":131072}]})";
    case NullRequest::Kind::Embeddings:
      for (std::size_t i = 0; i < request.item_count; ++i) {
        items +=
            fmt::format(R"({}{{"object":"embedding","index":{},"embedding":[0.5,0.5,0.5,0.5]}})",
                        i > 0 ? "," : "", i);
      }
      return fmt::format(R"({{"object":"list","model":"null","data":[{}],"usage":{}}})", items,
                         usage(request, false));
    case NullRequest::Kind::Rerank:
      for (std::size_t i = 0; i < request.item_count; ++i) {
        items += fmt::format(R"({}{{"index":{},"relevance_score":0.5}})", i > 0 ? "," : "", i);
      }
      return fmt::format(R"({{"model":"null","results":[{}],"usage":{}}})", items,
                         usage(request, false));
    case NullRequest::Kind::Chat:
    case NullRequest::Kind::Completions:
      return generation_body(request);
  }
  return {};
}

std::string null_token_event(const NullRequest& request, std::uint64_t index) {
  const auto word = fmt::format("{}word", index > 0 ? " " : "");
  const auto choice =
      request.kind == NullRequest::Kind::Chat
          ? fmt::format(
                R"([{{"index":0,"delta":{{"role":"assistant","content":"{}"}},"finish_reason":null}}])",
                word)
          : fmt::format(R"([{{"index":0,"text":"{}","finish_reason":null}}])", word);
  return event(request, choice, "");
}

std::string null_last_events(const NullRequest& request) {
  const std::string_view end = request.kind == NullRequest::Kind::Chat
                                   ? R"([{"index":0,"delta":{},"finish_reason":"length"}])"
                                   : R"([{"index":0,"text":"","finish_reason":"length"}])";
  return event(request, end, "") +
         event(request, "[]", fmt::format(",\"usage\":{}", usage(request, true))) +
         "data: [DONE]\n\n";
}

}  // namespace muster
