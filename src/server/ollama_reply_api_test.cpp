// Bodies of Ollama's two routes for replies: what is read, and what is refused by which name.
#include "server/ollama_reply_api.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

std::string generate(const std::string& more) {
  return R"({"model":"m","prompt":"x")" + more + "}";
}

std::string chat(const std::string& more) {
  return R"({"model":"m","messages":[{"role":"user","content":"x"}])" + more + "}";
}

std::string with_options(const std::string& options) {
  return generate(R"(,"options":{)" + options + "}");
}

OllamaReplyRequest taken(ApiResult<OllamaReplyRequest> request) {
  EXPECT_TRUE(request) << request.error().message;
  return request ? *std::move(request) : OllamaReplyRequest{};
}

OllamaReplyRequest generated(const std::string& body) {
  return taken(parse_ollama_generate(body, {}));
}

OllamaReplyRequest chatted(const std::string& body) { return taken(parse_ollama_chat(body, {})); }

// "FIELD: MESSAGE" of the refusal.
std::string refusal(const ApiResult<OllamaReplyRequest>& request) {
  if (request) return "none";
  EXPECT_EQ(request.error().status, 400);
  return request.error().param.value_or("-") + ": " + request.error().message;
}

std::string refused(const std::string& body) { return refusal(parse_ollama_generate(body, {})); }

// "role: content" of each.
std::vector<std::string> turns_of(const OllamaReplyRequest& request) {
  std::vector<std::string> turns;
  for (const auto& turn : request.call.turns) turns.push_back(turn.role + ": " + turn.content);
  return turns;
}

using Turns = std::vector<std::string>;

TEST(OllamaReplyApi, APromptIsATurnBehindThatOfTheSystem) {
  const auto request = generated(generate(R"(,"system":"be brief","stream":false)"));
  EXPECT_EQ(turns_of(request), (Turns{"system: be brief", "user: x"}));
  EXPECT_EQ(request.call.text, "");
  EXPECT_FALSE(request.is_chat || request.is_stream);
  EXPECT_EQ(turns_of(generated(generate(""))), Turns{"user: x"});
}

TEST(OllamaReplyApi, ARawPromptIsTakenAsItIs) {
  const auto request = generated(generate(R"(,"raw":true,"system":"")"));
  EXPECT_EQ(request.call.text, "x");
  EXPECT_TRUE(request.call.turns.empty());
  EXPECT_TRUE(request.is_stream) << "as where nothing is said";
  EXPECT_EQ(refused(generate(R"(,"raw":true,"system":"s")")),
            "system: Invalid 'system': a raw prompt has none beside it; write it into the prompt.");
}

TEST(OllamaReplyApi, AConversationIsReadAsClientsSendIt) {
  const auto request = chatted(
      R"({"model":"m:latest","stream":true,"tools":[],"format":"","keep_alive":"5m","messages":[
          {"role":"system","content":"s"},{"role":"user","content":"x","images":[]},
          {"role":"assistant","content":"y","thinking":"","tool_calls":[],"tool_name":""}]})");
  EXPECT_EQ(turns_of(request), (Turns{"system: s", "user: x", "assistant: y"}));
  EXPECT_TRUE(request.is_chat && request.is_stream);
  EXPECT_EQ(request.model_name, "m:latest");
  EXPECT_EQ(request.call.model, "m");
}

TEST(OllamaReplyApi, WhatIsNotGivenIsAsInOllamaButForTheRepeatPenalty) {
  auto request = generated(generate(""));
  request.call.sampling.seed = 0;
  EXPECT_EQ(request.call.sampling,
            (SamplingOptions{.temperature = 0.8, .top_k = 40, .top_p = 0.9}));
  EXPECT_EQ(request.call.token_limit, std::nullopt);
  EXPECT_TRUE(request.call.template_variables.empty());
}

TEST(OllamaReplyApi, ReadsEveryOptionThatChoosesTokens) {
  const auto call =
      generated(with_options(R"("num_predict":7,"temperature":0,"top_k":5,"top_p":0.5,"min_p":0.1,
          "seed":-2,"stop":["a","b"],"repeat_penalty":1.5,"presence_penalty":1,
          "frequency_penalty":-1,"repeat_last_n":-1)"))
          .call;
  EXPECT_EQ(call.token_limit, 7U);
  EXPECT_EQ(call.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(call.sampling, (SamplingOptions{.temperature = 0,
                                            .top_k = 5,
                                            .top_p = 0.5,
                                            .min_p = 0.1,
                                            .repetition_penalty = 1.5,
                                            .presence_penalty = 1,
                                            .frequency_penalty = -1,
                                            .seed = UINT64_MAX - 1}));
}

TEST(OllamaReplyApi, NumPredictMayGoOnUntilTheEnd) {
  const auto limit = [](const std::string& number) {
    return generated(with_options(R"("num_predict":)" + number)).call.token_limit;
  };
  EXPECT_EQ(limit("-1"), std::nullopt);
  EXPECT_EQ(limit("-2"), std::nullopt);
  EXPECT_EQ(limit("1"), 1U);
  EXPECT_EQ(limit("1048576"), 1U << 20);
  const std::string wrong =
      "options.num_predict: Invalid 'options.num_predict': expected an integer from 1 to "
      "1,048,576, or -1 for a reply until its end.";
  for (const auto* number : {"0", "-3", "1048577", "2.5"}) {
    EXPECT_EQ(refused(with_options(R"("num_predict":)" + std::string(number))), wrong) << number;
  }
  EXPECT_EQ(refused(with_options(R"("num_predict":"7")")),
            "options.num_predict: Invalid type for 'options.num_predict': expected a number, but "
            "got a string instead.");
}

TEST(OllamaReplyApi, ASeedOfMinusOneIsDrawn) {
  const auto seed = [](const std::string& options) {
    return generated(with_options(options)).call.sampling.seed;
  };
  EXPECT_EQ(seed(R"("seed":7)"), 7U);
  EXPECT_NE(seed(R"("seed":-1)"), seed(R"("seed":-1)"));  // the same once in 2^64
  EXPECT_NE(seed(""), seed(""));
}

TEST(OllamaReplyApi, PenaltiesOfNoTokensAreNone) {
  const auto sampling = generated(with_options(R"("repeat_last_n":0,"repeat_penalty":1.5,
      "presence_penalty":1,"frequency_penalty":1)"))
                            .call.sampling;
  EXPECT_EQ(sampling.repetition_penalty, 1);
  EXPECT_EQ(sampling.presence_penalty, 0);
  EXPECT_EQ(sampling.frequency_penalty, 0);
  EXPECT_EQ(refused(with_options(R"("repeat_last_n":64)")),
            "options.repeat_last_n: Unsupported 'options.repeat_last_n': expected -1, for all "
            "tokens, or 0, for no "
            "penalties.");
}

TEST(OllamaReplyApi, OptionsOfOllamasOwnRuntimeChangeNothing) {
  auto request = generated(
      with_options(R"("num_ctx":8192,"num_batch":512,"num_gpu":1,"main_gpu":0,"num_thread":4,
          "num_keep":4,"numa":false,"low_vram":true,"f16_kv":true,"use_mmap":true,
          "use_mlock":false,"logits_all":true,"vocab_only":false,"embedding_only":false,
          "mirostat":0,"mirostat_tau":5.0,"mirostat_eta":0.1,"typical_p":1.0,"tfs_z":1,
          "penalize_newline":true)"));
  request.call.sampling.seed = 0;
  EXPECT_EQ(request.call.sampling,
            (SamplingOptions{.temperature = 0.8, .top_k = 40, .top_p = 0.9}));
  EXPECT_EQ(refused(with_options(R"("num_ctx":"8192")")),
            "options.num_ctx: Invalid type for 'options.num_ctx': expected a number, but got a "
            "string instead.");
}

TEST(OllamaReplyApi, WhatAsksForNothingIsTaken) {
  generated(generate(R"(,"suffix":"","template":"","context":[],"images":[],"format":"",)"
                     R"("logprobs":false,"top_logprobs":0,"options":null,"keep_alive":null)"));
  const auto told = generated(generate(R"(,"think":false)")).call.template_variables;
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].first, "enable_thinking");
  EXPECT_TRUE(are_equal(told[0].second, ChatValue(false)));
}

TEST(OllamaReplyApi, WhatIsNotDoneIsRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("suffix":"s")", "suffix: Unsupported 'suffix': expected an empty string."},
      {R"("template":"t")", "template: Unsupported 'template': expected an empty string."},
      {R"("context":[1])", "context: Unsupported 'context': expected an empty array."},
      {R"("images":["iVBO"])", "images: Unsupported 'images': expected an empty array."},
      {R"("format":"json")", "format: Unsupported 'format': expected an empty string."},
      {R"("format":{"type":"object"})", "format: Unsupported 'format': expected an empty string."},
      {R"("think":true)", "think: Unsupported 'think': expected false."},
      {R"("think":"low")", "think: Unsupported 'think': expected false."},
      {R"("logprobs":true)", "logprobs: Unsupported 'logprobs': expected false."},
      {R"("top_logprobs":2)", "top_logprobs: Unsupported 'top_logprobs': expected 0."},
      {R"("options":{"mirostat":2})",
       "options.mirostat: Unsupported 'options.mirostat': expected 0."},
      {R"("options":{"typical_p":0.5})",
       "options.typical_p: Unsupported 'options.typical_p': expected 1."},
      {R"("options":{"vocab_only":true})",
       "options.vocab_only: Unsupported 'options.vocab_only': expected false."},
      {R"("options":{"penalize_newline":false})",
       "options.penalize_newline: Unsupported 'options.penalize_newline': expected true."},
      {R"("options":{"temprature":1})",
       "options.temprature: Unrecognized request argument supplied: options.temprature; did you "
       "mean options.temperature?"},
      {R"("options":{"seed":1e30})",
       "options.seed: Invalid 'options.seed': expected an integer from -2^63 to 2^64 - 1."},
      {R"("options":{"top_k":1.5})",
       "options.top_k: Invalid 'options.top_k': expected an integer, -1 or greater."},
      {R"("options":{"top_p":2})",
       "options.top_p: Invalid 'options.top_p': expected a number from 0 to 1."},
      {R"("options":{"stop":""})",
       "options.stop: Invalid 'options.stop': an empty string would end every reply."},
      {R"("options":{"seed":1,"seed":1})", "options.seed: 'options.seed' is given twice."},
      {R"("options":7)",
       "options: Invalid type for 'options': expected an object, but got a number instead."},
      {R"("keep_alive":[])",
       "keep_alive: Invalid type for 'keep_alive': expected a number of seconds or a duration as a "
       "string, but got an array instead."},
  };
  for (const auto& [field, expected] : cases) EXPECT_EQ(refused(generate("," + field)), expected);
  const auto of_chat = [](const std::string& body) { return refusal(parse_ollama_chat(body, {})); };
  EXPECT_EQ(of_chat(chat(R"(,"tools":[{}])")),
            "tools: Unsupported 'tools': expected an empty array.");
  EXPECT_EQ(of_chat(R"({"model":"m","messages":[{"role":"tool","content":"x"}]})"),
            "messages.role: Unsupported 'messages.role': expected 'system', 'user' or "
            "'assistant'.");
  EXPECT_EQ(of_chat(R"({"model":"m","messages":[{"role":"user","content":"x","images":["a"]}]})"),
            "messages.images: Unsupported 'messages.images': expected an empty array.");
  EXPECT_EQ(of_chat(R"({"model":"m","messages":[{"role":"user"}]})"),
            "messages.content: Missing required parameter: 'messages.content'.");
  EXPECT_EQ(of_chat(R"({"messages":[]})"), "model: Missing required parameter: 'model'.");
}

// Without a prompt it asks for the model to be loaded, or with a `keep_alive` of 0 unloaded.
TEST(OllamaReplyApi, NoPromptIsNoFault) {
  for (const auto* more : {"", R"(,"prompt":"")", R"(,"prompt":"","raw":true)", R"(,"system":"s")",
                           R"(,"keep_alive":"10m")", R"(,"keep_alive":-1)"}) {
    const auto request = generated(R"({"model":"m")" + std::string(more) + "}");
    EXPECT_TRUE(request.call.turns.empty() && request.call.text.empty()) << more;
  }
  EXPECT_TRUE(chatted(R"({"model":"m"})").call.turns.empty());
  EXPECT_TRUE(chatted(R"({"model":"m","messages":[]})").call.turns.empty());
  const std::string unloads =
      "keep_alive: Unsupported 'keep_alive': 0 without a prompt would unload the model; ask POST "
      "/v1/models/unload for that.";
  for (const auto* zero : {"0", "0.0", R"("0")", R"("0s")", R"("0h0m")"}) {
    const auto more = R"("keep_alive":)" + std::string(zero) + "}";
    EXPECT_EQ(refused(R"({"model":"m",)" + more), unloads) << zero;
    EXPECT_EQ(refusal(parse_ollama_chat(R"({"model":"m","messages":[],)" + more, {})), unloads);
    generated(R"({"model":"m","prompt":"x",)" + more);
  }
}

}  // namespace
}  // namespace muster
