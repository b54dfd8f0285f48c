#include "server/search_api.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

constexpr TextListLimits kLimits{.texts_most = 3, .text_bytes_most = 20};
constexpr Duration kDeadline = std::chrono::seconds(10);

TEST(SearchBody, TakesAllFields) {
  auto request = parse_search(
      R"({"queries":["a","b"],"index":"notes","top_k":3,"filter":"lang=de","min_score":0.25,)"
      R"("mmr":0.7,"mmr_candidates":9,"prompt_name":"query","model":"m","timeout_ms":5,)"
      R"("truncate":true,"user":"u","lane":"bulk"})",
      kLimits, kDeadline);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->queries, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request->index, "notes");
  EXPECT_EQ(request->filter, "lang=de");
  EXPECT_EQ(request->rank.count, 3U);
  EXPECT_EQ(request->rank.score_least, 0.25);
  EXPECT_EQ(request->rank.mmr_lambda, 0.7);
  EXPECT_EQ(request->rank.mmr_candidate_count, 9U);
  EXPECT_EQ(request->prompt_name, "query");
  EXPECT_EQ(request->options.model, "m");
  EXPECT_EQ(request->options.deadline, std::chrono::milliseconds(5));
}

TEST(SearchBody, AQueryIsEnough) {
  auto request = parse_search(R"({"query":"a"})", kLimits, kDeadline);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->queries, std::vector<std::string>{"a"});
  EXPECT_EQ(request->rank.count, 5U);
  EXPECT_FALSE(request->rank.mmr_lambda);
  EXPECT_FALSE(request->rank.score_least);
  auto wide = parse_search(R"({"query":"a","mmr":true,"k":300})", kLimits, kDeadline);
  ASSERT_TRUE(wide) << wide.error().message;
  EXPECT_EQ(wide->rank.mmr_lambda, 0.5);
  EXPECT_EQ(wide->rank.mmr_candidate_count, 1000U)
      << "five for a hit, and not more than a thousand";
  EXPECT_FALSE(parse_search(R"({"query":"a","mmr":false})", kLimits, kDeadline)->rank.mmr_lambda);
}

TEST(SearchBody, RefusesWhatIsMissingTwiceTooMuchOrOfAnotherType) {
  const std::pair<const char*, const char*> bodies[] = {
      {R"({})", "query"},
      {R"({"queries":[]})", "queries"},
      {R"({"query":"a","queries":["b"]})", "queries"},
      {R"({"queries":["a","b","c","d"]})", "queries"},
      {R"({"query":1})", "query"},
      {R"({"query":"a","k":0})", "k"},
      {R"({"query":"a","k":1001})", "k"},
      {R"({"query":"a","k":1,"top_k":1})", "top_k"},
      {R"({"query":"a","min_score":1.5})", "min_score"},
      {R"({"query":"a","min_score":"1"})", "min_score"},
      {R"({"query":"a","mmr":-0.1})", "mmr"},
      {R"({"query":"a","mmr":"yes"})", "mmr"},
      {R"({"query":"a","mmr_candidates":9})", "mmr_candidates"},
      {R"({"query":"a","mmr":true,"k":5,"mmr_candidates":4})", "mmr_candidates"},
      {R"({"query":"a","filter":["x"]})", "filter"},
      {R"({"query":"a","fliter":"x"})", "fliter"}};
  for (const auto& [body, param] : bodies) {
    const auto request = parse_search(body, kLimits, kDeadline);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().status, 400) << body;
    EXPECT_EQ(request.error().param, param) << body;
  }
}

TEST(SearchBody, TheHitsOfAllQueriesAreBounded) {
  std::string body = R"({"k":1000,"queries":["a")";
  for (int i = 0; i < 99; ++i) body += R"(,"a")";
  const TextListLimits limits{.texts_most = 200, .text_bytes_most = 20};
  EXPECT_TRUE(parse_search(body + "]}", limits, kDeadline));
  const auto refused = parse_search(body + R"(,"a"]})", limits, kDeadline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "Invalid 'k': at most 100,000 hits and candidates of a request, and 101 queries would "
            "have 1000 each.");
}

}  // namespace
}  // namespace muster
