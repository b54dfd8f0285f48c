// Bodies are made before a trial begins, so that making them costs its clock nothing.
#include "bench/load/api_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/http_client_connection.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// Each is one token with most vocabularies.
constexpr std::array<std::string_view, 64> kWords{
    "time",     "people", "way",    "water",    "word",    "day",     "part",     "sound",
    "work",     "place",  "year",   "back",     "thing",   "name",    "sentence", "line",
    "land",     "home",   "hand",   "house",    "world",   "page",    "country",  "answer",
    "school",   "study",  "food",   "sun",      "state",   "city",    "tree",     "farm",
    "story",    "night",  "life",   "children", "side",    "car",     "fire",     "sea",
    "river",    "paper",  "music",  "book",     "science", "room",    "idea",     "fish",
    "mountain", "base",   "horse",  "color",    "face",    "wood",    "list",     "bird",
    "body",     "dog",    "family", "song",     "door",    "product", "wind",     "ship"};

std::string target_of(BenchApi api) {
  switch (api) {
    case BenchApi::Embeddings:
      return "/v1/embeddings";
    case BenchApi::Rerank:
      return "/v1/rerank";
    case BenchApi::Chat:
      return "/v1/chat/completions";
    case BenchApi::Completions:
      return "/v1/completions";
    case BenchApi::Http:
      break;
  }
  return "/";
}

bool is_streaming(BenchApi api) { return api == BenchApi::Chat || api == BenchApi::Completions; }

// A list of the texts from `begin` on, starting over behind the last.
Json texts_from(std::span<const std::string> texts, std::size_t begin, std::size_t count) {
  auto list = Json::array();
  for (std::size_t i = 0; i < count; ++i) list.push_back(texts[(begin + i) % texts.size()]);
  return list;
}

// Temperature 0 and a fixed length make runs comparable; the usage is asked for because not every
// server sends one token an event.
Json generation_body(const ApiOptions& options, const std::string& text, std::uint64_t tokens) {
  Json body{{"model", options.model}};
  if (options.api == BenchApi::Chat) {
    body["messages"] = Json::array({{{"role", "user"}, {"content", text}}});
  } else {
    body["prompt"] = text;
  }
  body["max_tokens"] = tokens;
  body["temperature"] = 0;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (options.ignores_eos) body["ignore_eos"] = true;
  return body;
}

// What a benchmark says of its own: another value would be another benchmark, whose answers could
// not be read.
constexpr std::array<std::string_view, 9> kOwnMembers{"model",  "messages",       "prompt",
                                                      "input",  "query",          "documents",
                                                      "stream", "stream_options", "max_tokens"};

// Other names of "max_tokens": of OpenAI and of llama.cpp.
constexpr std::array<std::string_view, 2> kOtherLengths{"max_completion_tokens", "n_predict"};

// Usage counts the tokens of all replies, and their pieces come mixed: neither first token nor time
// per token would be of one.
constexpr std::array<std::string_view, 2> kSeveralReplies{"n", "best_of"};

// What the requests ask for, as far as it bounds their answers.
struct Asked {
  std::size_t request_bytes = 0;  // of the longest
  std::uint64_t tokens = 0;       // of the longest reply
};

AnswerReaderMaker reader_maker(const ApiOptions& options, const Asked& asked, bool keeps_text) {
  const auto count = static_cast<std::size_t>(options.texts_per_request);
  const auto list_reader_maker = [&](AnswerList list) -> AnswerReaderMaker {
    const auto most = list_bytes_most(list, count, asked.request_bytes);
    return [=] { return list_answer_reader(list, count, most); };
  };
  // What else a body has may ask for more than tokens: "echo" sends the prompt back.
  const auto reply_most =
      options.extra_body.empty() ? reply_bytes_most(asked.tokens) : kReplyBytesMost;
  switch (options.api) {
    case BenchApi::Embeddings:
      return list_reader_maker(AnswerList::Vectors);
    case BenchApi::Rerank:
      return list_reader_maker(AnswerList::Scores);
    case BenchApi::Chat:
    case BenchApi::Completions:
      return [=] { return stream_answer_reader(keeps_text, reply_most); };
    case BenchApi::Http:
      break;
  }
  return any_answer_reader;
}

}  // namespace

std::string_view bench_api_name(BenchApi api) {
  switch (api) {
    case BenchApi::Http:
      return "http";
    case BenchApi::Embeddings:
      return "embeddings";
    case BenchApi::Rerank:
      return "rerank";
    case BenchApi::Chat:
      return "chat";
    case BenchApi::Completions:
      return "completions";
  }
  return "";
}

Status check_extra_body(std::string_view json) {
  const auto parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("--extra-body must be a JSON object, as {{\"top_p\": 0.9}}: \"{}\"", json)};
  }
  for (const auto& [name, value] : parsed.items()) {
    if (std::ranges::find(kSeveralReplies, name) != kSeveralReplies.end()) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("--extra-body has {}: a request is measured with one reply", name)};
    }
    if (std::ranges::find(kOtherLengths, name) != kOtherLengths.end()) {
      return Error{ErrorKind::InvalidArgument,
                   fmt::format("--extra-body has {}, which is another name of max_tokens, and that "
                               "the benchmark itself sets",
                               name)};
    }
    if (std::ranges::find(kOwnMembers, name) == kOwnMembers.end()) continue;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--extra-body has {}, which the benchmark itself sets", name)};
  }
  return Done{};
}

PreparedRequests prepare_requests(const HttpUrl& url, const ApiOptions& options,
                                  std::span<const std::string> texts, bool keeps_text) {
  PreparedRequests prepared{.bytes = {}, .make_reader = {}, .target = target_of(options.api)};
  Asked asked;
  auto headers = options.headers;
  headers.emplace_back("Content-Type", "application/json");
  if (is_streaming(options.api)) headers.emplace_back("Accept", "text/event-stream");
  const std::size_t in_query = options.api == BenchApi::Rerank ? 1 : 0;
  const auto per_request =
      is_streaming(options.api) ? 1 : in_query + std::max(1U, options.texts_per_request);
  RandomStream lengths(options.seed);
  const auto extra = options.extra_body.empty() ? Json::object() : Json::parse(options.extra_body);
  for (std::size_t at = 0; at < texts.size(); at += per_request) {
    Json body;
    if (is_streaming(options.api)) {
      const auto tokens = options.output_tokens.draw(lengths);
      asked.tokens = std::max(asked.tokens, tokens);
      body = generation_body(options, texts[at], tokens);
    } else if (options.api == BenchApi::Rerank) {
      body = {{"model", options.model},
              {"query", texts[at]},
              {"documents", texts_from(texts, at + 1, options.texts_per_request)}};
    } else {
      body = {{"model", options.model}, {"input", texts_from(texts, at, per_request)}};
    }
    body.update(extra);
    // The texts of files are UTF-8; what is not is replaced.
    const auto text = body.dump(-1, ' ', false, Json::error_handler_t::replace);
    asked.request_bytes = std::max(asked.request_bytes, text.size());
    prepared.bytes.push_back(http_request_head(url, "POST", prepared.target, headers, text.size()) +
                             text);
  }
  prepared.make_reader = reader_maker(options, asked, keeps_text);
  return prepared;
}

PreparedRequests prepare_plain_requests(const HttpUrl& url, const std::string& target,
                                        std::span<const std::string> bodies,
                                        const HttpHeaders& headers) {
  PreparedRequests prepared{.bytes = {}, .make_reader = any_answer_reader, .target = target};
  if (bodies.empty()) {
    prepared.bytes.push_back(http_request_head(url, "GET", target, headers, 0));
  }
  auto all = headers;
  if (!find_header(headers, "content-type")) all.emplace_back("Content-Type", "application/json");
  for (const auto& body : bodies) {
    prepared.bytes.push_back(http_request_head(url, "POST", target, all, body.size()) + body);
  }
  return prepared;
}

// The mean of a log-normal law is exp(mu + sigma^2 / 2); what is cut off above makes it no larger.
std::uint64_t made_text_bytes(const LengthLaw& words) {
  std::size_t letters = 0;
  for (const auto word : kWords) letters += word.size();
  const double word_bytes =
      1 + static_cast<double>(letters) / static_cast<double>(kWords.size());  // and a space
  const double mean = std::clamp(words.median * std::exp(words.sigma * words.sigma / 2), 1.0,
                                 static_cast<double>(kLengthMost));
  return static_cast<std::uint64_t>(std::ceil(mean * word_bytes));
}

std::vector<std::string> generate_texts(const LengthLaw& words, std::size_t count,
                                        std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    // Its number comes first, in three words, so that it differs from all others from its first
    // tokens on.
    constexpr std::uint64_t kNumberWords = 3;
    std::string text;
    const auto length = words.draw(random);
    std::size_t rest = i;
    for (std::uint64_t word = 0; word < length; ++word) {
      const auto choice = word < kNumberWords ? rest % kWords.size() : random.below(kWords.size());
      rest /= kWords.size();
      if (word > 0) text += ' ';
      text += kWords[choice];
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace muster
