// Several prompts of one request, over HTTP. The decoder counts: the reply to "a" is "bcd…", its
// choice i begins i tokens further on (stand_ins/counting_worker).
#include "server/prompt_group.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "server/generation_fixture.h"

namespace muster {
namespace {

class PromptGroupTest : public GenerationFixture {
 protected:
  HttpAnswer complete(const std::string& prompts, const std::string& more = "") {
    return post("/v1/completions",
                R"({"model":"chat","prompt":)" + prompts + R"(,"max_tokens":2)" + more + "}");
  }

  // The texts of an answer that is whole, whose choices are numbered from 0 on.
  static std::vector<std::string> texts_of(const Json& answer) {
    std::vector<std::string> texts;
    for (const auto& choice : answer["choices"]) {
      EXPECT_EQ(choice["index"], texts.size());
      EXPECT_EQ(choice["finish_reason"], "length");
      texts.push_back(choice["text"]);
    }
    return texts;
  }
};

TEST_F(PromptGroupTest, TheChoicesOfEachPromptFollowThoseOfTheOneBefore) {
  start_counting();
  const auto reply = json(complete(R"(["a","m"])", R"(,"n":2)"));
  EXPECT_EQ(texts_of(reply), (std::vector<std::string>{"bc", "cd", "no", "op"}));
  EXPECT_EQ(reply["usage"], Json({{"prompt_tokens", 2},
                                  {"completion_tokens", 8},
                                  {"total_tokens", 10},
                                  {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(PromptGroupTest, PromptsMayBeListsOfIds) {
  start_counting();
  const auto reply = json(complete("[[1],[13,2]]", R"(,"echo":true)"));
  EXPECT_EQ(texts_of(reply), (std::vector<std::string>{"abc", "mbcd"}));
  EXPECT_EQ(reply["usage"]["prompt_tokens"], 3);
}

TEST_F(PromptGroupTest, TheBestOfEachPromptIsAnswered) {
  start_counting();
  const auto reply = json(complete(R"(["a","m"])", R"(,"best_of":3)"));
  EXPECT_EQ(texts_of(reply), (std::vector<std::string>{"de", "pq"})) << reply;
}

TEST_F(PromptGroupTest, AStreamNumbersAllChoicesAndHasOneUsage) {
  start_counting();
  const auto all =
      events(complete(R"(["a","m"])", R"(,"stream":true,"stream_options":{"include_usage":true})"));
  std::vector<std::string> texts(2);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const auto& choice = all[i]["choices"][0];
    texts[choice["index"].get<std::size_t>()] += choice["text"].get<std::string>();
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"bc", "no"}));
  EXPECT_EQ(all.back()["usage"]["completion_tokens"], 4);
}

TEST_F(PromptGroupTest, APromptThatIsTooLongIsNamed) {
  start_counting("wait_at=1");
  const auto refused = complete(R"(["a",")" + std::string(120, 'x') + R"("])");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(message(refused).starts_with("Invalid 'prompt': prompt 2 of 2: the context is 100"))
      << refused.body;
  while (metric("generation_running") != "0") std::this_thread::yield();  // the first one ends
}

TEST_F(PromptGroupTest, AClientThatGoesEndsThemAll) {
  start_counting("wait_at=2");
  auto client = begin_stream(R"({"model":"chat","prompt":["a","b","c"],"stream":true})");
  while (metric("generation_running") != "3") std::this_thread::yield();
  client.reset();
  while (metric("generation_running") != "0") std::this_thread::yield();
  const auto text = get("/metrics").body;
  EXPECT_NE(text.find("muster_generation_ended_total{reason=\"cancelled\"} 3\n"), std::string::npos)
      << text;
}

TEST_F(PromptGroupTest, MorePromptsThanCouldEverBeLetInAreRefusedForGood) {
  options_.replies_waiting_most = 40;
  start_counting();
  std::string prompts = "[";
  for (int i = 0; i < 200; ++i) prompts += i == 0 ? R"("a")" : R"(,"a")";
  const auto refused = complete(prompts + "]");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(message(refused).starts_with(
      "Invalid 'prompt': 200 prompts ask for 200 replies, and the server computes and queues at "
      "most "))
      << refused.body;
  EXPECT_EQ(complete(R"(["a","b"])").status, 200);
}

TEST(CallsOfTest, APromptThatIsGivenTwiceHasASeedOfItsOwnWhereNoneIsGiven) {
  GenerationRequest request{.more_prompts = {{.text = "b"}, {.ids = {4}}}, .draws_seed = true};
  request.call.text = "a";
  request.call.sampling.seed = 5;
  const auto drawn = calls_of(request);
  ASSERT_EQ(drawn.size(), 3U);
  EXPECT_EQ(drawn[0].text, "a");
  EXPECT_EQ(drawn[1].text, "b");
  EXPECT_TRUE(drawn[2].text.empty());
  EXPECT_EQ(drawn[2].ids, (std::vector<std::uint32_t>{4}));
  EXPECT_NE(drawn[1].sampling.seed, drawn[2].sampling.seed);
  request.draws_seed = false;
  for (const auto& call : calls_of(request)) EXPECT_EQ(call.sampling.seed, 5U);
}

}  // namespace
}  // namespace muster
