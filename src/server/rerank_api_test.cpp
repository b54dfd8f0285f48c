#include "server/rerank_api.h"

#include <gtest/gtest.h>

#include <limits>

#include "server/tokenize_api.h"

namespace muster {
namespace {

constexpr TextListLimits kLimits{.texts_most = 3, .text_bytes_most = 20};
constexpr Duration kDeadline = std::chrono::seconds(10);

TEST(RerankBody, TakesDocumentsAsCohereAndJinaWriteThem) {
  auto request =
      parse_rerank(R"({"model":"m","query":"q","documents":["a",{"text":"b"}],"top_n":1,)"
                   R"("return_documents":true,"raw_scores":true,"truncate":true})",
                   kLimits, kDeadline);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->call.query, "q");
  EXPECT_EQ(request->call.texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request->top_n, 1U);
  EXPECT_TRUE(request->return_documents);
  EXPECT_TRUE(request->call.raw_scores);
}

TEST(RerankBody, TakesTextsAsTeiWritesThem) {
  auto request =
      parse_rerank(R"({"query":"","texts":["a"],"return_text":true})", kLimits, kDeadline);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->call.texts, std::vector<std::string>{"a"});
  EXPECT_TRUE(request->return_documents);
}

TEST(RerankBody, RefusesWhatIsMissingTwiceTooMuchOrOfAnotherType) {
  for (const std::string body :
       {R"({"texts":["a"]})", R"({"query":"q"})", R"({"query":"q","texts":[]})",
        R"({"query":"q","texts":["a"],"documents":["b"]})", R"({"query":"q","texts":[1]})",
        R"({"query":"q","texts":["a","b","c","d"]})", R"({"query":1,"texts":["a"]})",
        R"({"query":"q","texts":[{"title":"a"}]})", R"({"query":"q","texts":[{}]})",
        R"({"query":"q","texts":["a"],"top_n":0})", R"({"query":"q","texts":["a"],"topn":1})"}) {
    const auto request = parse_rerank(body, kLimits, kDeadline);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().status, 400);
  }
}

TEST(RerankAnswer, IsTheBestFirstAndEqualOnesInTheirOrder) {
  RerankRequest request;
  request.call.texts = {"a", "b\n", "c"};
  request.return_documents = true;
  request.top_n = 2;
  const RerankAnswer answer{.model = "m", .scores = {0.25F, 0.5F, 0.5F}, .token_count = 12};
  EXPECT_EQ(rerank_response(answer, request).body,
            R"({"model":"m","results":[)"
            R"({"index":1,"relevance_score":0.5,"document":{"text":"b\n"}},)"
            R"({"index":2,"relevance_score":0.5,"document":{"text":"c"}}],)"
            R"("usage":{"prompt_tokens":12,"total_tokens":12}})");
}

TEST(RerankAnswer, AScoreThatIsNotFiniteIsAnError) {
  const RerankAnswer answer{.model = "m", .scores = {std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(rerank_response(answer, {}).status, 500);
}

TEST(TokenizeBody, TakesBothNames) {
  auto request = parse_tokenize(R"({"inputs":["a","b"],"prompt_name":"p"})", kLimits, kDeadline);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request->prompt_name, "p");
  request = parse_tokenize(R"({"input":"a","model":"m"})", kLimits, kDeadline);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->texts, std::vector<std::string>{"a"});
  EXPECT_FALSE(parse_tokenize(R"({"input":"a","inputs":"b"})", kLimits, kDeadline));
  EXPECT_FALSE(parse_tokenize("{}", kLimits, kDeadline));
}

TEST(TokenizeAnswer, HasTheIdsOfEachText) {
  TokensAnswer answer({{.ids = {101, 7}, .is_truncated = true}, {.ids = {102}}},
                      tokenize_form("m", 3));
  EXPECT_FALSE(answer.write(1));  // a text at a time
  EXPECT_TRUE(answer.write(1));
  EXPECT_EQ(answer.take().body,
            R"({"object":"list","data":[)"
            R"({"object":"tokens","index":0,"ids":[101,7],"count":2,"truncated":true},)"
            R"({"object":"tokens","index":1,"ids":[102],"count":1,"truncated":false}],)"
            R"("model":"m","usage":{"prompt_tokens":3,"total_tokens":3}})");
}

}  // namespace
}  // namespace muster
