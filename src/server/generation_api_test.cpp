// Bodies of the two routes for replies: what is read, and what is refused by which name.
#include "server/generation_api.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {
namespace {

std::string chat(const std::string& more) {
  return R"({"model":"m","messages":[{"role":"user","content":"x"}])" + more + "}";
}

GenerationRequest parsed_chat(const std::string& body) {
  auto request = parse_chat(body, {});
  EXPECT_TRUE(request) << request.error().message;
  return request ? *std::move(request) : GenerationRequest{};
}

// "FIELD: MESSAGE" of the refusal.
std::string refusal(const ApiResult<GenerationRequest>& request) {
  if (request) return "none";
  EXPECT_EQ(request.error().status, 400);
  return request.error().param.value_or("-") + ": " + request.error().message;
}

TEST(GenerationApi, ReadsAConversationAndEverySetting) {
  const auto request = parsed_chat(
      R"({"model":"m","messages":[{"role":"developer","content":"be brief"},
          {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":"Al"},
          {"role":"assistant","content":"c"}],
          "stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":7,
          "temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"seed":-2,"presence_penalty":1,
          "frequency_penalty":-1,"repetition_penalty":1.5,"logit_bias":{"5":-100},
          "stop":["x","y"],"ignore_eos":true,"user":"u","n":3,"logprobs":true,"top_logprobs":5,
          "store":false})");
  EXPECT_TRUE(request.is_chat && request.is_stream && request.includes_usage);
  const auto& call = request.call;
  ASSERT_EQ(call.turns.size(), 3U);
  EXPECT_EQ(call.turns[0].role, "system");
  EXPECT_EQ(call.turns[1].content, "ab");
  EXPECT_EQ(call.turns[1].name, "Al");
  EXPECT_EQ(call.turns[2].content, "c");
  EXPECT_EQ(call.token_limit, 7U);
  EXPECT_EQ(call.stops, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(call.ignores_stop_ids);
  const SamplingOptions expected{.temperature = 0.5,
                                 .top_k = 40,
                                 .top_p = 0.9,
                                 .min_p = 0.1,
                                 .repetition_penalty = 1.5,
                                 .presence_penalty = 1,
                                 .frequency_penalty = -1,
                                 .seed = UINT64_MAX - 1,
                                 .logprob_count = 5,
                                 .logit_bias = {{5, -100.0F}}};
  EXPECT_EQ(call.sampling, expected);
  EXPECT_EQ(call.choice_count, 3U);
  EXPECT_EQ(call.candidate_count, 3U);
}

TEST(GenerationApi, LogprobsAreOfTheChosenTokenAloneOrOfTheLikeliestToo) {
  const auto of_chat = [](const std::string& more) {
    return parsed_chat(chat(more)).call.sampling.logprob_count;
  };
  EXPECT_EQ(of_chat(""), std::nullopt);
  EXPECT_EQ(of_chat(R"(,"logprobs":false,"top_logprobs":0)"), std::nullopt);
  EXPECT_EQ(of_chat(R"(,"logprobs":true)"), 0U);
  EXPECT_EQ(of_chat(R"(,"top_logprobs":20,"logprobs":true)"), 20U);
  const auto of_completion = [](const std::string& more) {
    auto request = parse_completion(R"({"model":"m","prompt":"x")" + more + "}", {});
    EXPECT_TRUE(request) << request.error().message;
    return request ? request->call.sampling.logprob_count : std::nullopt;
  };
  EXPECT_EQ(of_completion(""), std::nullopt);
  EXPECT_EQ(of_completion(R"(,"logprobs":0)"), 0U);
  EXPECT_EQ(of_completion(R"(,"logprobs":5)"), 5U);
}

TEST(GenerationApi, TheBestAreTakenOfAtLeastAsManyAsAreWanted) {
  const auto counts = [](const std::string& more) {
    auto request = parse_completion(R"({"model":"m","prompt":"x")" + more + "}", {});
    EXPECT_TRUE(request) << request.error().message;
    if (!request) return std::pair(0U, 0U);
    return std::pair(request->call.choice_count, request->call.candidate_count);
  };
  EXPECT_EQ(counts(""), std::pair(1U, 1U));
  EXPECT_EQ(counts(R"(,"best_of":4)"), std::pair(1U, 4U));
  EXPECT_EQ(counts(R"(,"n":3)"), std::pair(3U, 3U));
  EXPECT_EQ(counts(R"(,"n":2,"best_of":32)"), std::pair(2U, 32U));
  EXPECT_EQ(counts(R"(,"n":2,"best_of":2,"stream":true)"), std::pair(2U, 2U));
  const auto refused = [](const std::string& more) {
    return refusal(parse_completion(R"({"model":"m","prompt":"x")" + more + "}", {}));
  };
  EXPECT_EQ(refused(R"(,"n":3,"best_of":2)"),
            "best_of: Invalid 'best_of': expected at least 'n', which is 3.");
  EXPECT_EQ(refused(R"(,"best_of":2,"stream":true)"),
            "best_of: Invalid 'best_of': a stream cannot wait for the best; expected 'n', or no "
            "'stream'.");
  EXPECT_EQ(refused(R"(,"best_of":33)"),
            "best_of: Invalid 'best_of': expected an integer from 1 to 32.");
  EXPECT_EQ(refused(R"(,"n":0)"), "n: Invalid 'n': expected an integer from 1 to 32.");
  EXPECT_EQ(refused(R"(,"n":2.5)"), "n: Invalid 'n': expected an integer from 1 to 32.");
}

// As evaluations ask for how likely a text is: with no new token.
TEST(GenerationApi, AnEchoMayBeScoredAndStandAlone) {
  const auto body = [](const std::string& more) {
    return parse_completion(R"({"model":"m","prompt":"x")" + more + "}", {});
  };
  auto scored = body(R"(,"echo":true,"logprobs":1,"max_tokens":0)");
  ASSERT_TRUE(scored) << scored.error().message;
  EXPECT_TRUE(scored->call.echoes_prompt && scored->call.scores_prompt());
  EXPECT_EQ(scored->call.token_limit, 0U);
  EXPECT_EQ(scored->call.sampling.logprob_count, 1U);
  auto plain = body(R"(,"echo":true)");
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->call.scores_prompt());
  EXPECT_EQ(plain->call.token_limit, 16U);
  EXPECT_FALSE(body(R"(,"logprobs":1)")->call.scores_prompt());
  EXPECT_EQ(refusal(body(R"(,"max_tokens":0)")),
            "max_tokens: Invalid 'max_tokens': expected an integer from 1 to 1,048,576; 0 is for "
            "'echo' alone.");
  EXPECT_EQ(refusal(body(R"(,"max_tokens":0,"echo":false,"logprobs":1)")),
            refusal(body(R"(,"max_tokens":0)")));
}

TEST(GenerationApi, WhatIsNotGivenIsAsWithOpenAi) {
  const auto request = parsed_chat(chat(R"(,"top_k":-1,"stop":"one","max_tokens":null)"));
  EXPECT_EQ(request.call.sampling.temperature, 1);
  EXPECT_EQ(request.call.sampling.top_p, 1);
  EXPECT_EQ(request.call.sampling.top_k, 0U);
  EXPECT_EQ(request.call.token_limit, std::nullopt);
  EXPECT_EQ(request.call.stops, std::vector<std::string>{"one"});
  EXPECT_TRUE(parsed_chat(chat(R"(,"stop":[])")).call.stops.empty());
  EXPECT_NE(request.call.sampling.seed, parsed_chat(chat("")).call.sampling.seed) << "it is drawn";
  const auto completion = parse_completion(R"({"model":"m","prompt":"x"})", {});
  ASSERT_TRUE(completion);
  auto kept = completion;
  EXPECT_EQ(kept->call.token_limit, 16U);
}

TEST(GenerationApi, APromptIsATextOrIds) {
  const auto call = [](const std::string& prompt) {
    auto request = parse_completion(R"({"model":"m","prompt":)" + prompt + "}", {});
    EXPECT_TRUE(request) << request.error().message;
    return request ? request->call : GenerationCall{};
  };
  EXPECT_EQ(call(R"("a b")").text, "a b");
  EXPECT_EQ(call(R"(["a b"])").text, "a b");
  EXPECT_EQ(call("[3,1,2]").ids, (std::vector<std::uint32_t>{3, 1, 2}));
  EXPECT_EQ(call("[[3,1,2]]").ids, (std::vector<std::uint32_t>{3, 1, 2})) << "a list of one";
  const auto refused = [](const std::string& prompt) {
    return refusal(parse_completion(R"({"model":"m","prompt":)" + prompt + "}", {}));
  };
  EXPECT_EQ(refused(R"("")"),
            "prompt: Invalid 'prompt': it is empty, and there is nothing to continue.");
  EXPECT_EQ(refused(R"(["a",""])"), refused(R"("")"));
  EXPECT_EQ(refused(R"(["a",5])"),
            "prompt: Unsupported 'prompt': expected a list of texts, of token ids, or of lists of "
            "token ids.");
  EXPECT_EQ(refused(R"([5,"a"])"), refused(R"(["a",5])"));
  EXPECT_EQ(refused("[1,[2]]"), refused(R"(["a",5])"));
  EXPECT_EQ(refused("[[1],2]"), refused(R"(["a",5])"));
  EXPECT_EQ(refused(R"([[1],"a"])"), refused(R"(["a",5])"));
  EXPECT_EQ(refused("[[1],[]]"), refused("[]"));
  EXPECT_TRUE(refused("[[[1]]]").starts_with("prompt: Invalid type for 'prompt'"));
  EXPECT_TRUE(refused("[]").starts_with("prompt: Invalid 'prompt': empty array."));
  EXPECT_EQ(refused("[[]]"), refused("[]"));
  EXPECT_TRUE(refused("true").starts_with("prompt: Invalid type for 'prompt'"));
  EXPECT_TRUE(refused("[-1]").starts_with("prompt: Invalid 'prompt': expected an integer"));
}

// OpenAI, API reference, "Create completion": `prompt` is a text, token ids, or a list of either.
TEST(GenerationApi, ACompletionMayHaveSeveralPrompts) {
  const auto read = [](const std::string& more) {
    auto request = parse_completion(R"({"model":"m",)" + more + "}", {});
    EXPECT_TRUE(request) << request.error().message;
    return request ? *std::move(request) : GenerationRequest{};
  };
  const auto texts = read(R"("prompt":["a","b c"],"seed":5)");
  EXPECT_EQ(texts.call.text, "a");
  ASSERT_EQ(texts.more_prompts.size(), 1U);
  EXPECT_EQ(texts.more_prompts[0].text, "b c");
  EXPECT_FALSE(texts.draws_seed);
  const auto ids = read(R"("prompt":[[1,2],[3],[4,5]])");
  EXPECT_EQ(ids.call.ids, (std::vector<std::uint32_t>{1, 2}));
  ASSERT_EQ(ids.more_prompts.size(), 2U);
  EXPECT_EQ(ids.more_prompts[0].ids, (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(ids.more_prompts[1].ids, (std::vector<std::uint32_t>{4, 5}));
  EXPECT_TRUE(ids.draws_seed);
  const GenerationLimits limits{.prompts_most = 2};
  EXPECT_TRUE(refusal(parse_completion(R"({"model":"m","prompt":["a","b","c"]})", limits))
                  .starts_with("prompt: Invalid 'prompt'"));
}

// JavaScript and JSON libraries of other languages write what they have computed as a float.
TEST(GenerationApi, AWholeNumberMayBeWrittenAsAFloat) {
  const auto completion = [](const std::string& more) {
    auto request = parse_completion(R"({"model":"m","prompt":[3.0,1e0,2])" + more + "}", {});
    EXPECT_TRUE(request) << request.error().message;
    return request ? request->call : GenerationCall{};
  };
  const auto call = completion(
      R"(,"n":1.0,"best_of":2.0,"max_tokens":1.6e1,"top_k":4.0,"logprobs":5.0,"seed":-7.0)");
  EXPECT_EQ(call.ids, (std::vector<std::uint32_t>{3, 1, 2}));
  EXPECT_EQ(call.choice_count, 1U);
  EXPECT_EQ(call.candidate_count, 2U);
  EXPECT_EQ(call.token_limit, 16U);
  EXPECT_EQ(call.sampling.top_k, 4U);
  EXPECT_EQ(call.sampling.logprob_count, 5U);
  EXPECT_EQ(call.sampling.seed, UINT64_MAX - 6);
  const auto seed = [&](const std::string& number) {
    return completion(R"(,"seed":)" + number).sampling.seed;
  };
  EXPECT_EQ(seed("7.0"), 7U);
  EXPECT_EQ(seed("18446744073709551615"), UINT64_MAX) << "no double holds it";
  EXPECT_EQ(seed("-9223372036854775808"), std::uint64_t{1} << 63U);
  const auto refused = [](const std::string& more) { return refusal(parse_chat(chat(more), {})); };
  for (const char* number : {"1.5", "1e-1", "-1.0", "1e30", "33.0"}) {
    EXPECT_EQ(refused(std::string(R"(,"n":)") + number),
              "n: Invalid 'n': expected an integer from 1 to 32.")
        << number;
  }
  EXPECT_EQ(refused(R"(,"top_k":-2)"),
            "top_k: Invalid 'top_k': expected an integer, -1 or greater.");
  EXPECT_TRUE(refused(R"(,"n":"1")").starts_with("n: Invalid type for 'n'"));
  EXPECT_TRUE(refused(R"(,"seed":1.5)").starts_with("seed: Invalid 'seed'"));
  EXPECT_TRUE(refused(R"(,"seed":"a")").starts_with("seed: Invalid type for 'seed'"));
}

TEST(GenerationApi, EachFaultIsNamed) {
  const auto refused = [](const std::string& more) { return refusal(parse_chat(chat(more), {})); };
  EXPECT_EQ(refused(R"(,"max_tokens":0)"),
            "max_tokens: Invalid 'max_tokens': expected an integer from 1 to 1,048,576.");
  EXPECT_EQ(refused(R"(,"max_completion_tokens":-1)"),
            "max_completion_tokens: Invalid 'max_completion_tokens': expected an integer from 1 to "
            "1,048,576.");
  EXPECT_EQ(refused(R"(,"temperature":-0.1)"),
            "temperature: Invalid 'temperature': expected a number from 0 to 2.");
  EXPECT_EQ(refused(R"(,"temperature":"hot")"),
            "temperature: Invalid type for 'temperature': expected a number, but got a string "
            "instead.");
  EXPECT_EQ(refused(R"(,"top_p":1.1)"), "top_p: Invalid 'top_p': expected a number from 0 to 1.");
  EXPECT_EQ(refused(R"(,"top_k":1.5)"),
            "top_k: Invalid 'top_k': expected an integer, -1 or greater.");
  EXPECT_EQ(refused(R"(,"n":33)"), "n: Invalid 'n': expected an integer from 1 to 32.");
  EXPECT_TRUE(refused(R"(,"logprobs":3)").starts_with("logprobs: Invalid type for 'logprobs'"));
  EXPECT_EQ(refused(R"(,"logprobs":true,"top_logprobs":21)"),
            "top_logprobs: Invalid 'top_logprobs': expected an integer from 0 to 20.");
  EXPECT_EQ(refused(R"(,"top_logprobs":2)"),
            "top_logprobs: Invalid 'top_logprobs': it is for answers with 'logprobs'; set that to "
            "true.");
  EXPECT_TRUE(refused(R"(,"best_of":2)").starts_with("best_of: Unrecognized request argument"));
  EXPECT_EQ(refused(R"(,"stop":"")"),
            "stop: Invalid 'stop': an empty string would end every reply.");
  EXPECT_EQ(refused(R"(,"logit_bias":{"the":1})"),
            "logit_bias: Invalid 'logit_bias': expected the ids of tokens as names.");
  EXPECT_EQ(refused(R"(,"logit_bias":{"5":100,"05":100})"),
            "logit_bias: Invalid 'logit_bias': 5 is given twice.");
  EXPECT_EQ(refused(R"(,"stream_options":{"include_usage":true})"),
            "stream_options: Invalid 'stream_options': only a stream has options; set 'stream'.");
  EXPECT_EQ(refused(R"(,"stream":true,"stream_options":{"include_usage":1})"),
            "stream_options.include_usage: Invalid type for 'stream_options.include_usage': "
            "expected a boolean, but got a number instead.");
  EXPECT_EQ(refused(R"(,"stream":true,"stream_options":{"include_usages":true})"),
            "stream_options.include_usages: Unrecognized request argument supplied: "
            "stream_options.include_usages; did you mean stream_options.include_usage?");
  for (const char* seed : {"1e30", "18446744073709551616", "-1e19", "0.5"}) {
    EXPECT_EQ(refused(R"(,"seed":)" + std::string(seed)),
              "seed: Invalid 'seed': expected an integer from -2^63 to 2^64 - 1.")
        << seed;
  }
  EXPECT_EQ(refused(R"(,"max_tokens":1,"max_completion_tokens":2)"),
            "max_tokens: Invalid 'max_tokens': 'max_completion_tokens' says another number.");
  EXPECT_TRUE(refused(R"(,"functions":[])")
                  .starts_with("functions: Unrecognized request argument supplied: functions"));
  EXPECT_TRUE(refused(R"(,"temprature":1)").ends_with("did you mean temperature?"));
}

// Clients and proxies send them with every request.
TEST(GenerationApi, ValuesThatAskForNothingAreTaken) {
  const auto refused = [](const std::string& more) { return refusal(parse_chat(chat(more), {})); };
  for (const char* idle :
       {R"("response_format":{"type":"text"})", R"("response_format":null)", R"("tools":[])",
        R"("tool_choice":"none")", R"("tool_choice":"auto")", R"("parallel_tool_calls":true)",
        R"("parallel_tool_calls":false)", R"("metadata":{})", R"("top_logprobs":null)",
        R"("service_tier":"auto")", R"("service_tier":"default")"}) {
    EXPECT_EQ(refused(std::string(",") + idle), "none") << idle;
  }
  // Behind them the rest of the body is still read.
  EXPECT_EQ(refused(R"(,"tools":[],"metadata":{},"response_format":{"type":"text"},"n":0)"),
            "n: Invalid 'n': expected an integer from 1 to 32.");
  const std::string format =
      "response_format.type: Unsupported 'response_format.type': expected 'text'.";
  EXPECT_EQ(refused(R"(,"response_format":{"type":"json_object"})"), format);
  EXPECT_EQ(refused(R"(,"response_format":{"json_schema":{"a":1},"type":"json_schema"})"), format);
  EXPECT_EQ(refused(R"(,"response_format":{})"),
            "response_format.type: Missing required parameter: 'response_format.type'.");
  EXPECT_EQ(refused(R"(,"tools":[{"type":"function"}])"),
            "tools: Unsupported 'tools': expected an empty array.");
  EXPECT_EQ(refused(R"(,"tool_choice":"required")"),
            "tool_choice: Unsupported 'tool_choice': expected 'none' or 'auto'.");
  EXPECT_EQ(refused(R"(,"metadata":{"a":"b"})"),
            "metadata: Unsupported 'metadata': expected an empty object.");
  EXPECT_EQ(refused(R"(,"service_tier":"flex")"),
            "service_tier: Unsupported 'service_tier': expected 'auto' or 'default'.");
  EXPECT_TRUE(refused(R"(,"tools":{})").starts_with("tools: Invalid type for 'tools'"));
  EXPECT_TRUE(refused(R"(,"tool_choice":{"type":"function"})")
                  .starts_with("tool_choice: Invalid type for 'tool_choice'"));
}

TEST(GenerationApi, VariablesOfTheChatTemplateAreReadOrNamed) {
  const auto told =
      parsed_chat(chat(R"(,"chat_template_kwargs":{"enable_thinking":false,"a":{"b":[1]}},"n":2)"));
  EXPECT_EQ(template_variables_json(told.call.template_variables),
            R"({"enable_thinking": false, "a": {"b": [1]}})");
  EXPECT_EQ(told.call.choice_count, 2U) << "the rest of the body is still read";
  const auto refused = [](const std::string& json) {
    return refusal(parse_chat(chat(",\"chat_template_kwargs\":" + json), {}));
  };
  EXPECT_EQ(refused("{}"), "none");
  EXPECT_EQ(refused("null"), "none");
  EXPECT_TRUE(refused("[]").starts_with("chat_template_kwargs: Invalid type for"));
  EXPECT_EQ(
      refused(R"({"tools":[]})"),
      "chat_template_kwargs: Invalid 'chat_template_kwargs': 'tools' cannot be given here: the "
      "rendering sets it.");
  EXPECT_NE(refused(R"({"a":tru})"), "none");
}

// As LangChain's client sends them.
TEST(GenerationApi, FieldsThatAreNotHonouredAreTakenAsNull) {
  const auto completion = [](const std::string& more) {
    return refusal(parse_completion(R"({"model":"m","prompt":"x")" + more + "}", {}));
  };
  EXPECT_EQ(completion(R"(,"logprobs":null,"suffix":null)"), "none");
  EXPECT_EQ(completion(R"(,"logprobs":21)"),
            "logprobs: Invalid 'logprobs': expected an integer from 0 to 20.");
  EXPECT_EQ(completion(R"(,"suffix":"x")"), "suffix: Unsupported 'suffix': expected null.");
}

TEST(GenerationApi, EachFaultOfAMessageIsNamed) {
  const auto refused = [](const std::string& messages) {
    return refusal(parse_chat(R"({"model":"m","messages":)" + messages + "}", {}));
  };
  EXPECT_TRUE(refused("[]").starts_with("messages: Invalid 'messages': empty array."));
  EXPECT_TRUE(refused(R"("x")").starts_with("messages: Invalid type for 'messages'"));
  EXPECT_EQ(refused(R"([{"content":"x"}])"),
            "messages.role: Missing required parameter: 'messages.role'.");
  EXPECT_EQ(refused(R"([{"role":"user"}])"),
            "messages.content: Missing required parameter: 'messages.content'.");
  EXPECT_EQ(refused(R"([{"role":"tool","content":"x"}])"),
            "messages.role: Unsupported 'messages.role': expected 'system', 'developer', 'user' or "
            "'assistant'.");
  EXPECT_EQ(refused(R"([{"role":"user","role":"user","content":"x"}])"),
            "messages.role: 'messages.role' is given twice.");
  EXPECT_EQ(refused(R"([{"rol":"user"}])"),
            "messages.rol: Unrecognized request argument supplied: messages.rol; did you mean "
            "messages.role?");
  EXPECT_EQ(refused(R"([{"role":"user","content":[{"type":"text"}]}])"),
            "messages.content.text: Missing required parameter: 'messages.content.text'.");
  EXPECT_EQ(refused(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
            "messages.content.type: Unsupported 'messages.content.type': expected 'text'; no "
            "model that runs here reads images, sound or files.");
  EXPECT_EQ(refusal(parse_chat(R"({"model":"m"})", {})),
            "messages: Missing required parameter: 'messages'.");
  EXPECT_TRUE(parse_completion(R"({"model":"","prompt":"x"})", {})) << "the first one";
  EXPECT_EQ(refusal(parse_chat(R"({"messages":[{"role":"user","content":"x"}]})", {})),
            "model: Missing required parameter: 'model'.");
  EXPECT_EQ(refusal(parse_completion(R"({"model":"m"})", {})),
            "prompt: Missing required parameter: 'prompt'.");
}

}  // namespace
}  // namespace muster
