#include "server/tei_api.h"

#include <gtest/gtest.h>

#include "server/score_api.h"

namespace muster {
namespace {

constexpr InputLimits kLimits{.texts_most = 3, .text_bytes_most = 20, .ids_most = 4};
constexpr TextListLimits kTextLimits{.texts_most = 3, .text_bytes_most = 20};
constexpr Duration kDeadline = std::chrono::seconds(1);

TEST(TeiEmbedBody, TakesTheFieldsOfItsClients) {
  auto request = parse_tei_embed(
      R"({"inputs":["a","b"],"normalize":false,"truncate":true,"truncation_direction":"left",)"
      R"("prompt_name":"query","dimensions":8})",
      kLimits, kDeadline);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->call.texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(request->is_normalized);
  EXPECT_TRUE(request->call.wants_own_length);
  EXPECT_EQ(request->call.options.truncate, true);
  EXPECT_EQ(request->call.options.truncation_side, TruncationSide::Left);
  EXPECT_EQ(request->call.prompt_name, "query");
  EXPECT_EQ(request->call.dimensions, 8U);
}

TEST(TeiEmbedBody, NormalizesUnlessToldOtherwise) {
  auto request = parse_tei_embed(R"({"inputs":"a"})", kLimits, kDeadline);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->is_normalized);
  EXPECT_FALSE(request->call.wants_own_length);
}

TEST(TeiEmbedBody, FaultsNameTheFieldInputs) {
  for (const std::string body : {R"({"inputs":7})", R"({"inputs":[]})", "{}"}) {
    const auto request = parse_tei_embed(body, kLimits, kDeadline);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().param, "inputs") << body;
  }
}

TEST(TeiSimilarityBody, PutsTheSourceFirst) {
  auto call = parse_tei_similarity(R"({"inputs":{"sentences":["b","c"],"source_sentence":"a"},)"
                                   R"("parameters":{"truncate":true,"prompt_name":"query"}})",
                                   kTextLimits, kDeadline);
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->texts, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(call->options.truncate, true);
  EXPECT_EQ(call->prompt_name, "query");
}

TEST(TeiSimilarityBody, CountsTheSourceAndRefusesWhatIsMissing) {
  const auto refused = [](const char* body) {
    const auto call = parse_tei_similarity(body, kTextLimits, kDeadline);
    EXPECT_FALSE(call) << body;
    return call ? std::string() : call.error().param.value_or("");
  };
  EXPECT_EQ(refused(R"({"inputs":{"source_sentence":"a","sentences":["b","c","d"]}})"),
            "inputs.sentences");
  EXPECT_EQ(refused(R"({"inputs":{"sentences":["b"]}})"), "inputs.source_sentence");
  EXPECT_EQ(refused(R"({"inputs":{"source_sentence":"a"}})"), "inputs.sentences");
  EXPECT_EQ(refused(R"({"inputs":{"source_sentence":"a","sentence":["b"]}})"), "inputs.sentence");
  EXPECT_EQ(refused(R"({"inputs":"a"})"), "inputs");
}

TEST(TeiSimilarityBody, FaultsNameTheFieldWithItsPlace) {
  const auto refused = [](const std::string& body) {
    const auto call = parse_tei_similarity(body, kTextLimits, kDeadline);
    EXPECT_FALSE(call) << body;
    return call ? ApiError{} : call.error();
  };
  const auto source = refused(R"({"inputs":{"source_sentence":5}})");
  EXPECT_EQ(source.param, "inputs.source_sentence");
  EXPECT_NE(source.message.find("'inputs.source_sentence'"), std::string::npos) << source.message;
  EXPECT_EQ(refused(R"({"inputs":{"sentences":[5]}})").param, "inputs.sentences");
  EXPECT_EQ(refused(R"({"inputs":{"sentences":[]}})").param, "inputs.sentences");
  EXPECT_EQ(refused(R"({"parameters":{"truncate":5}})").param, "parameters.truncate");
  EXPECT_EQ(refused(R"({"parameters":{"prompt_name":5}})").param, "parameters.prompt_name");
  const auto side = refused(R"({"parameters":{"truncation_direction":"up"}})");
  EXPECT_EQ(side.param, "parameters.truncation_direction");
  EXPECT_EQ(side.message, "Invalid 'parameters.truncation_direction': expected 'Left' or 'Right'.");
}

// (3, 4) with (4, 3): 24 / 25; with (-3, -4): -1; with a row of zeros: 0.
TEST(TeiSimilarities, AreTheCosinesWithTheFirstRow) {
  const EmbedAnswer answer{.dim = 2, .rows = {3, 4, 4, 3, -3, -4, 0, 0}};
  EXPECT_EQ(tei_similarities(answer).body, "[0.96,-1,0]");
}

TEST(PairCosines, AreOfOneWithAllOrOfEachWithItsOwn) {
  const std::vector<float> one_with_two{3, 4, 4, 3, 3, 4};
  EXPECT_EQ(pair_cosines(one_with_two, 2, 1), (std::vector<float>{0.96F, 1}));
  const std::vector<float> two_with_two{3, 4, 1, 0, 4, 3, 0, 1};
  EXPECT_EQ(pair_cosines(two_with_two, 2, 2), (std::vector<float>{0.96F, 0}));
}

TEST(TeiTokens, HaveTheirTextAndNoPlace) {
  const std::vector<TokenizedText> texts{
      {.ids = {101, 7}, .pieces = {{.text = "[CLS]", .is_special = true}, {.text = "a\""}}},
      {.ids = {9}, .pieces = {{.text = "b"}}}};
  TokensAnswer answer(texts, tei_tokens_form());
  EXPECT_TRUE(answer.write(100));
  EXPECT_EQ(answer.take().body,
            R"([[{"id":101,"text":"[CLS]","special":true,"start":null,"stop":null},)"
            R"({"id":7,"text":"a\"","special":false,"start":null,"stop":null}],)"
            R"([{"id":9,"text":"b","special":false,"start":null,"stop":null}]])");
}

TEST(TeiDecodeBody, TakesTheIdsOfOneTextOrOfSeveral) {
  auto one = parse_tei_decode(R"({"ids":[1,2],"skip_special_tokens":false})", kLimits, kDeadline);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->ids, (std::vector<std::vector<std::uint32_t>>{{1, 2}}));
  EXPECT_FALSE(one->skips_special_tokens);
  auto several = parse_tei_decode(R"({"ids":[[1],[2,3]]})", kLimits, kDeadline);
  ASSERT_TRUE(several);
  EXPECT_EQ(several->ids.size(), 2U);
  EXPECT_FALSE(parse_tei_decode(R"({"ids":"a"})", kLimits, kDeadline));
}

TEST(TeiRanks, AreTheBestFirstWithTheirTextsWhereAsked) {
  RerankRequest request;
  const RerankAnswer answer{.scores = {0.25F, 0.5F}};
  EXPECT_EQ(tei_ranks(answer, request).body,
            R"([{"index":1,"score":0.5},{"index":0,"score":0.25}])");
  request.call.texts = {"a", "b"};
  request.return_documents = true;
  request.top_n = 1;
  EXPECT_EQ(tei_ranks(answer, request).body, R"([{"index":1,"text":"b","score":0.5}])");
}

TEST(ScoreBody, TakesVllmsNamesOfTheTwoSides) {
  for (const std::string body :
       {R"({"text_1":"q","text_2":["a","b"]})", R"({"data_1":["q"],"data_2":["a","b"]})",
        R"({"queries":"q","documents":["a","b"]})", R"({"queries":"q","items":["a","b"]})"}) {
    auto request = parse_score(body, kTextLimits, kDeadline);
    ASSERT_TRUE(request) << body << request.error().message;
    EXPECT_EQ(request->first, std::vector<std::string>{"q"});
    EXPECT_EQ(request->second, (std::vector<std::string>{"a", "b"}));
  }
  for (const std::string body :
       {R"({"text_1":"q"})", R"({"text_1":"q","text_2":[]})", R"({"text_2":"q"})",
        R"({"text_1":["a","b"],"text_2":"q"})", R"({"text_1":"a","data_1":"b","text_2":"q"})"}) {
    EXPECT_FALSE(parse_score(body, kTextLimits, kDeadline)) << body;
  }
}

}  // namespace
}  // namespace muster
