// Several replies to one request, and log-probabilities, over HTTP. The decoder counts: choice i
// begins i tokens further on, and the log-probability of token t is (t - 64) / 8
// (stand_ins/counting_worker).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "server/generation_fixture.h"

namespace muster {
namespace {

class GenerationChoices : public GenerationFixture {};

// ---- Choices: the one of index i begins i tokens further on ----

TEST_F(GenerationChoices, SeveralChoicesComeSideBySide) {
  start_counting();
  const auto chat = json(ask_chat(R"(,"n":3,"max_tokens":2)"));
  ASSERT_EQ(chat["choices"].size(), 3U);
  const std::vector<std::string> texts{"yz", "z\uFFFD", "é"};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& choice = chat["choices"][i];
    EXPECT_EQ(choice["index"], i);
    EXPECT_EQ(choice["message"]["content"], texts[i]);
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["logprobs"], Json(nullptr));
  }
  EXPECT_EQ(chat["usage"], Json({{"prompt_tokens", 1},
                                 {"completion_tokens", 6},
                                 {"total_tokens", 7},
                                 {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
  const auto single = json(ask_chat(R"(,"max_tokens":2)"));
  EXPECT_EQ(single["choices"][0]["message"], chat["choices"][0]["message"]);
}

// Each part names its choice, each choice has its own end, and the usage comes once.
TEST_F(GenerationChoices, SeveralChoicesAreStreamedTogether) {
  start_counting();
  const auto all = events(ask_chat(
      R"(,"n":3,"max_tokens":4,"stream":true,"stream_options":{"include_usage":true})", "4"));
  std::vector<std::string> texts(3);
  std::vector<std::string> reasons(3);
  std::vector<int> role_count(3);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_EQ(all[i]["usage"], Json(nullptr));
    ASSERT_EQ(all[i]["choices"].size(), 1U);
    const auto& choice = all[i]["choices"][0];
    const auto index = choice["index"].get<std::size_t>();
    EXPECT_EQ(reasons[index], "") << "nothing comes behind its end";
    role_count[index] += choice["delta"].contains("role") ? 1 : 0;
    texts[index] += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null())
      reasons[index] = choice["finish_reason"].get<std::string>();
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"5678", "678", "78"}));
  EXPECT_EQ(reasons, (std::vector<std::string>{"length", "stop", "stop"}));
  EXPECT_EQ(role_count, std::vector<int>(3, 1));
  EXPECT_EQ(all.back()["choices"], Json::array());
  EXPECT_EQ(all.back()["usage"], Json({{"prompt_tokens", 1},
                                       {"completion_tokens", 9},
                                       {"total_tokens", 10},
                                       {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(GenerationChoices, ChoicesSurviveTheDeathOfTheirWorkers) {
  start_counting("die_after=4");
  const auto reply =
      json(post("/v1/completions", R"({"model":"chat","prompt":"a","n":2,"max_tokens":9})"));
  EXPECT_EQ(reply["choices"][0]["text"], "bcdefghij");
  EXPECT_EQ(reply["choices"][1]["text"], "cdefghijk");
}

TEST_F(GenerationChoices, AChoiceThatFailsFailsTheRequest) {
  start_counting("fail_choice=1");
  const auto whole = ask_chat(R"(,"n":2)");
  EXPECT_EQ(whole.status, 500) << whole.body;
  EXPECT_EQ(message(whole), "told to fail this choice");
  EXPECT_EQ(ask_chat("").status, 200) << "a request for one is as ever";
}

// It is not the caller's, and no file is named.
TEST_F(GenerationChoices, AModelWhoseNumbersAreNoneIsAFaultOfTheServer) {
  start_counting("nan_at=1");
  const auto whole = ask_chat("");
  EXPECT_EQ(whole.status, 500) << whole.body;
  EXPECT_EQ(message(whole), "the model's logits are not finite numbers");
}

TEST_F(GenerationChoices, AClientThatGoesEndsAllItsChoices) {
  start_counting("wait_at=2");
  auto client = begin_stream(R"({"model":"chat","prompt":"a","n":3,"stream":true})");
  while (metric("generation_running") != "3") std::this_thread::yield();
  client.reset();
  expect_cancelled(3);
}

// The log-probability of token t is (t - 64) / 8: the last candidate is the likeliest.
TEST_F(GenerationChoices, TheBestOfTheCandidatesIsAnswered) {
  start_counting();
  const auto reply =
      json(post("/v1/completions",
                R"({"model":"chat","prompt":"a","n":2,"best_of":4,"max_tokens":2,"logprobs":0})"));
  ASSERT_EQ(reply["choices"].size(), 2U);
  EXPECT_EQ(reply["choices"][0]["index"], 0);
  EXPECT_EQ(reply["choices"][0]["text"], "ef");
  EXPECT_EQ(reply["choices"][0]["logprobs"]["tokens"], Json::array({"e", "f"}));
  EXPECT_EQ(reply["choices"][1]["index"], 1);
  EXPECT_EQ(reply["choices"][1]["text"], "de");
  EXPECT_EQ(reply["usage"]["completion_tokens"], 8) << "of all that were computed";
}

// ---- Log-probabilities ----

TEST_F(GenerationChoices, AConversationHasTheLogprobsOfItsTokens) {
  start_counting();
  const auto reply = json(ask_chat(R"(,"max_tokens":3,"logprobs":true,"top_logprobs":2)"));
  const auto& logprobs = reply["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["refusal"], Json(nullptr));
  ASSERT_EQ(logprobs["content"].size(), 3U);
  EXPECT_EQ(
      logprobs["content"][0],
      Json({{"token", "y"},
            {"logprob", -4.875},
            {"bytes", Json::array({121})},
            {"top_logprobs",
             Json::array({{{"token", "y"}, {"logprob", -4.875}, {"bytes", Json::array({121})}},
                          {{"token", "x"}, {"logprob", -5.0}, {"bytes", Json::array({120})}}})}}));
  EXPECT_EQ(logprobs["content"][2]["bytes"], Json::array({0xC3})) << "half of é";
}

TEST_F(GenerationChoices, AContinuationHasTheListsOfItsTokens) {
  start_counting();
  const auto reply =
      json(post("/v1/completions",
                R"({"model":"chat","prompt":"x","max_tokens":5,"logprobs":1,"stop":"0"})"));
  EXPECT_EQ(reply["choices"][0]["text"], "yzé");
  const auto& logprobs = reply["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], Json::array({"y", "z", "bytes:\\xc3", "bytes:\\xa9", "0"}));
  EXPECT_EQ(logprobs["token_logprobs"], Json::array({-4.875, -4.75, -4.625, -4.5, -4.375}));
  EXPECT_EQ(logprobs["text_offset"], Json::array({0, 1, 2, 2, 3}));
  EXPECT_EQ(logprobs["top_logprobs"][0], Json::object({{"y", -4.875}}));
  EXPECT_EQ(reply["usage"]["completion_tokens"], 5) << "those of the stop string, too";
}

// In a stream each part has those of its own tokens, also of one whose text is held back.
TEST_F(GenerationChoices, AStreamHasEachLogprobOnce) {
  start_counting();
  for (const bool is_chat : {true, false}) {
    const auto all = events(
        is_chat
            ? ask_chat(R"(,"stream":true,"max_tokens":6,"logprobs":true)")
            : post("/v1/completions",
                   R"({"model":"chat","prompt":"x","stream":true,"max_tokens":6,"logprobs":0})"));
    std::string bytes;
    std::vector<std::uint64_t> offsets;
    for (const auto& event : all) {
      const auto& logprobs = event["choices"][0]["logprobs"];
      if (logprobs.is_null()) continue;
      for (const auto& token : logprobs.value("content", Json::array())) {
        for (const auto& byte : token["bytes"]) bytes += static_cast<char>(byte.get<int>());
        EXPECT_EQ(token["top_logprobs"], Json::array());
      }
      for (const auto& offset : logprobs.value("text_offset", Json::array())) {
        offsets.push_back(offset.get<std::uint64_t>());
      }
    }
    if (is_chat) {
      EXPECT_EQ(bytes, "yzé01");
    } else {
      EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 1, 2, 2, 3, 4}));
    }
    EXPECT_EQ(all.back()["choices"][0]["logprobs"], Json(nullptr));
  }
}

TEST_F(GenerationChoices, AnAnswerThatTheServerCannotHoldIsRefused) {
  options_.http.memory_most = 512 << 10;
  start_counting();
  // 32 choices of 100 tokens, each with 21 of 96 bytes and a text of 8: 6,476,800 bytes; 7/8 of the
  // 524,288 are for one.
  const auto large = ask_chat(R"(,"n":32,"logprobs":true,"top_logprobs":20)");
  EXPECT_EQ(large.status, 400) << large.body;
  EXPECT_EQ(json(large)["error"]["param"], "max_tokens");
  EXPECT_EQ(message(large),
            "Invalid 'max_tokens': the answer may take 6.48 MB with its choices, echo and "
            "log-probabilities, and the server holds 459 kB for a request.");
  EXPECT_EQ(ask_chat(R"(,"n":32,"logprobs":true,"max_tokens":2)").status, 200);
  // 32 echoes of 20,000 bytes; without them the answer is small.
  const auto echo = [&](bool is_echo) {
    return post("/v1/completions", Json({{"model", "chat"},
                                         {"prompt", std::string(20'000, 'a')},
                                         {"n", 32},
                                         {"max_tokens", 1},
                                         {"echo", is_echo}})
                                       .dump());
  };
  EXPECT_EQ(json(echo(true))["error"]["param"], "max_tokens");
  EXPECT_EQ(json(echo(false))["error"]["param"], "prompt") << "it is longer than the context";
}

// Two choices of 100 tokens, each with 21 of 96 bytes and a text of 8, may take 404,800 bytes, and
// 458,752 may be held. Both requests wait behind their first tokens.
TEST_F(GenerationChoices, AnAnswerHoldsAQuarterAtFirst) {
  options_.http.memory_most = 512 << 10;
  start_counting("wait_at=1");
  const std::string body =
      R"({"model":"chat","messages":[{"role":"user","content":"a"}],"n":2,"max_tokens":100,)"
      R"("logprobs":true,"top_logprobs":20})";
  const auto first = begin_post("/v1/chat/completions", body);
  while (metric("generation_tokens_total") != "2") std::this_thread::yield();
  const auto second =
      call("POST", "/v1/chat/completions",
           {{"Content-Type", "application/json"}, {"X-Request-Timeout-Ms", "300"}}, body);
  EXPECT_EQ(second.status, 504) << "it was let in, and waited: " << second.body;
}

// The first holds a quarter and, for twice 90 tokens, a piece of 262,144 bytes more. The second is
// small at first, and has no room for a piece when it is not.
TEST_F(GenerationChoices, AnAnswerForWhichThereIsNoMoreRoomIsGivenUp) {
  options_.http.memory_most = 512 << 10;
  start_counting("wait_at=90");
  const std::string body =
      R"({"model":"chat","messages":[{"role":"user","content":"a"}],"max_tokens":95,)"
      R"("ignore_eos":true,"logprobs":true,"top_logprobs":20,"n":)";
  const auto first = begin_post("/v1/chat/completions", body + "2}");
  while (metric("generation_tokens_total") != "180") std::this_thread::yield();
  EXPECT_GT(std::stoull(metric("http_memory_bytes")), 262'144U);
  const auto second = post("/v1/chat/completions", body + "1}");
  EXPECT_EQ(second.status, 503) << second.body;
  EXPECT_EQ(message(second), "The server holds as much for its clients as it may");
  EXPECT_EQ(metric("generation_running"), "2") << "those of the first";
}

TEST_F(GenerationChoices, APromptIsEchoed) {
  start_counting();
  const auto reply = json(post(
      "/v1/completions", R"({"model":"chat","prompt":"wx","echo":true,"max_tokens":1,"n":2})"));
  EXPECT_EQ(reply["choices"][0]["text"], "wxy");
  EXPECT_EQ(reply["choices"][1]["text"], "wxz");
  const auto all =
      events(post("/v1/completions",
                  R"({"model":"chat","prompt":[23,24],"echo":true,"max_tokens":1,"stream":true})"));
  EXPECT_EQ(all[0]["choices"][0]["text"], "wxy");
}

// What lm-eval-harness sends for the likelihood of a text. The log-probability of token t is
// (t - 64) / 8, and b is 2, c is 3.
TEST_F(GenerationChoices, AnEchoIsScoredWithoutANewToken) {
  start_counting();
  const auto reply = json(post(
      "/v1/completions",
      R"({"model":"chat","prompt":"abc","echo":true,"logprobs":1,"max_tokens":0,"temperature":0})"));
  const auto& choice = reply["choices"][0];
  EXPECT_EQ(choice["text"], "abc");
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"],
            Json({{"tokens", {"a", "b", "c"}},
                  {"token_logprobs", {nullptr, -7.75, -7.625}},
                  {"top_logprobs", {nullptr, Json{{"b", -7.75}}, Json{{"c", -7.625}}}},
                  {"text_offset", {0, 1, 2}}}));
  EXPECT_EQ(reply["usage"], Json({{"prompt_tokens", 3},
                                  {"completion_tokens", 0},
                                  {"total_tokens", 3},
                                  {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
  // The same of ids and with a reply behind it, in a stream.
  const auto all = events(post(
      "/v1/completions",
      R"({"model":"chat","prompt":[1,2,3],"echo":true,"logprobs":0,"max_tokens":1,"stream":true})"));
  std::string text;
  auto scores = Json::array();
  for (const auto& event : all) {
    const auto& part = event["choices"][0];
    text += part["text"].get<std::string>();
    if (part["logprobs"].is_null()) continue;
    for (const auto& score : part["logprobs"]["token_logprobs"]) scores.push_back(score);
  }
  EXPECT_EQ(text, "abcd");
  EXPECT_EQ(scores, Json::array({nullptr, -7.75, -7.625, -7.5}));
}

}  // namespace
}  // namespace muster
