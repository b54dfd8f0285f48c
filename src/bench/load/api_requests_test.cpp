#include "bench/load/api_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace muster {
namespace {

using Json = nlohmann::json;

const std::vector<std::string> kTexts{"one", "two", "three"};

HttpUrl url() { return *parse_http_url("http://127.0.0.1:8000/base"); }

Json body_of(const std::string& bytes) {
  return Json::parse(bytes.substr(bytes.find("\r\n\r\n") + 4));
}

TEST(PrepareRequests, MakesEmbeddingsOfGroups) {
  const auto made = prepare_requests(url(),
                                     {.api = BenchApi::Embeddings,
                                      .model = "m",
                                      .texts_per_request = 2,
                                      .headers = {{"Authorization", "Bearer k"}}},
                                     kTexts, false);
  ASSERT_EQ(made.bytes.size(), 2U);
  EXPECT_TRUE(
      made.bytes[0].starts_with("POST /base/v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n"));
  EXPECT_NE(made.bytes[0].find("\r\nAuthorization: Bearer k\r\n"), std::string::npos);
  EXPECT_EQ(body_of(made.bytes[0]), (Json{{"model", "m"}, {"input", {"one", "two"}}}));
  EXPECT_EQ(body_of(made.bytes[1])["input"], (Json{"three", "one"}));
  auto reader = made.make_reader();
  reader->on_body(R"({"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2]}]})", 0);
  EXPECT_FALSE(reader->finish().problem);
  // 1 MiB and two vectors of 256 KiB, and 8 KiB for each of the 37 bytes of the longer request.
  EXPECT_TRUE(reader->on_body(std::string(1'572'864 + 37 * 8'192, ' '), 0));
  EXPECT_FALSE(reader->on_body(" ", 0));
}

TEST(PrepareRequests, MakesRerankWithTheFirstAsTheQuery) {
  const auto made = prepare_requests(
      url(), {.api = BenchApi::Rerank, .model = "m", .texts_per_request = 2}, kTexts, false);
  ASSERT_EQ(made.bytes.size(), 1U);
  EXPECT_EQ(body_of(made.bytes[0]),
            (Json{{"model", "m"}, {"query", "one"}, {"documents", {"two", "three"}}}));
}

TEST(PrepareRequests, MakesStreamsOfGeneratedText) {
  const auto chat = prepare_requests(
      url(),
      {.api = BenchApi::Chat, .model = "m", .output_tokens = {.median = 9}, .ignores_eos = true},
      kTexts, false);
  ASSERT_EQ(chat.bytes.size(), 3U);
  const auto body = body_of(chat.bytes[1]);
  EXPECT_EQ(body["messages"], (Json::array({{{"role", "user"}, {"content", "two"}}})));
  EXPECT_EQ(body["max_tokens"], 9);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_EQ(body["ignore_eos"], true);
  const auto text =
      body_of(prepare_requests(url(), {.api = BenchApi::Completions, .model = "m"}, kTexts, false)
                  .bytes[0]);
  EXPECT_EQ(text["prompt"], "one");
  EXPECT_FALSE(text.contains("ignore_eos"));
}

TEST(PrepareRequests, AddsWhatABodyIsToHaveBesides) {
  const std::string extra = R"({"temperature":0.7,"top_k":3})";
  ASSERT_TRUE(check_extra_body(extra));
  const auto chat =
      prepare_requests(url(), {.api = BenchApi::Chat, .extra_body = extra}, kTexts, false);
  EXPECT_EQ(body_of(chat.bytes[2])["temperature"], 0.7);
  EXPECT_EQ(body_of(chat.bytes[2])["top_k"], 3);
  const auto plain = prepare_requests(url(), {.api = BenchApi::Chat}, kTexts, false);
  EXPECT_EQ(body_of(plain.bytes[2])["temperature"], 0) << "so that runs can be repeated";
  EXPECT_EQ(check_extra_body("[1]").error().message,
            "--extra-body must be a JSON object, as {\"top_p\": 0.9}: \"[1]\"");
  EXPECT_EQ(check_extra_body(R"({"max_tokens":3})").error().message,
            "--extra-body has max_tokens, which the benchmark itself sets");
  for (const std::string name : {"max_completion_tokens", "n_predict"}) {
    EXPECT_EQ(check_extra_body("{\"" + name + "\":3}").error().message,
              "--extra-body has " + name +
                  ", which is another name of max_tokens, and that the benchmark itself sets");
  }
  EXPECT_EQ(check_extra_body(R"({"top_k":1,"n":2})").error().message,
            "--extra-body has n: a request is measured with one reply");
}

// 16 MiB, and 16 KiB for a token; with "echo" and "logprobs" a prompt comes back behind each.
TEST(PrepareRequests, BoundsAReplyByItsTokensWhereNothingElseIsAskedFor) {
  const std::string most(16'777'216 + 16'384, '\n');
  const auto can_be_longer = [&](const std::string& extra) {
    const auto made = prepare_requests(
        url(), {.api = BenchApi::Completions, .output_tokens = {.median = 1}, .extra_body = extra},
        kTexts, false);
    auto reader = made.make_reader();
    EXPECT_TRUE(reader->on_body(most, 0));
    return reader->on_body("\n", 0);
  };
  EXPECT_FALSE(can_be_longer(""));
  EXPECT_TRUE(can_be_longer(R"({"echo":true,"logprobs":5})"));
}

TEST(PreparePlainRequests, GetsOrPosts) {
  const auto get = prepare_plain_requests(url(), "?a=b", {}, {});
  EXPECT_EQ(get.bytes,
            std::vector<std::string>{"GET /base?a=b HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n"});
  const std::vector<std::string> bodies{"{}"};
  const auto post = prepare_plain_requests(url(), "", bodies, {});
  EXPECT_EQ(post.bytes[0],
            "POST /base HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Length: 2\r\nContent-Type: "
            "application/json\r\n\r\n{}");
}

TEST(GenerateTexts, AreUnlikeAndOfTheLengthAskedFor) {
  const auto texts = generate_texts({.median = 3}, 5'000, 1);
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), 5'000U);
  for (const auto& text : texts) EXPECT_EQ(std::ranges::count(text, ' '), 2) << text;
  EXPECT_EQ(texts, generate_texts({.median = 3}, 5'000, 1));
}

// What bounds their memory: the spread of 100,000 words is far below a per cent of their sum.
TEST(GenerateTexts, HaveTheBytesThatAreCountedOn) {
  std::size_t bytes = 0;
  for (const auto& text : generate_texts({.median = 1'000}, 100, 1)) bytes += text.size();
  const auto each = static_cast<double>(bytes) / 100;
  EXPECT_NEAR(static_cast<double>(made_text_bytes({.median = 1'000})), each, 0.01 * each);
  // e^(2^2 / 2) is 7.389: so much longer is the mean than the median.
  EXPECT_NEAR(static_cast<double>(made_text_bytes({.median = 1'000, .sigma = 2})), 7.389 * each,
              0.1 * each);
  EXPECT_GE(made_text_bytes({.median = 0}), 1U);
}

}  // namespace
}  // namespace muster
