// Replies as Ollama's clients ask for them, from a decoder that counts (stand_ins/counting_worker).
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/generation_fixture.h"
#include "serving/decoder_memory.h"

namespace muster {
namespace {

const std::pair<std::string, std::string> kJsonBody{"Content-Type", "application/json"};

class OllamaReplies : public GenerationFixture {
 protected:
  // Each is ready for itself.
  void start_beside_encoder() {
    add_decoder("");
    start();
    while (json(get("/api/tags"))["models"].size() < 2) std::this_thread::yield();
  }

  HttpAnswer generate(const std::string& more) {
    return post("/api/generate", R"({"model":"chat")" + more + "}");
  }

  HttpAnswer chat(const std::string& more, const std::string& content = "x") {
    return post("/api/chat", R"({"model":"chat","messages":[{"role":"user","content":")" + content +
                                 R"("}])" + more + "}");
  }

  // The objects of a stream.
  static std::vector<Json> lines(const HttpAnswer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.header("content-type"), "application/x-ndjson");
    EXPECT_TRUE(answer.body.ends_with('\n')) << answer.body;
    std::vector<Json> all;
    for (std::size_t at = 0; at < answer.body.size();) {
      const auto end = answer.body.find('\n', at);
      all.push_back(Json::parse(answer.body.substr(at, end - at)));
      at = end + 1;
    }
    return all;
  }

  static std::string said(const HttpAnswer& answer) {
    return json(answer)["error"].get<std::string>();
  }

  // What stands in the audit log of the first request to a path, once the server has ended.
  Json audited(std::string_view path) {
    loop_.stop();
    thread_.join();
    server_.reset();
    std::ifstream audit(options_.audit_file);
    std::string line;
    while (std::getline(audit, line) && line.find(path) == std::string::npos) {
    }
    return line.empty() ? Json() : Json::parse(line);
  }
};

TEST_F(OllamaReplies, APromptIsContinuedInLines) {
  start_counting();
  const auto all = lines(generate(R"(,"prompt":"x")"));
  ASSERT_GE(all.size(), 2U);
  std::string text;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_EQ(all[i].size(), 4U) << all[i];
    EXPECT_EQ(all[i]["model"], "chat");
    EXPECT_TRUE(all[i]["created_at"].is_string());
    EXPECT_EQ(all[i]["done"], false);
    text += all[i]["response"].get<std::string>();
  }
  EXPECT_EQ(text, "yzé012345678");
  const auto& last = all.back();
  EXPECT_EQ(last["response"], "");
  EXPECT_EQ(last["done"], true);
  EXPECT_EQ(last["done_reason"], "stop");
  EXPECT_EQ(last["prompt_eval_count"], 1);
  EXPECT_EQ(last["eval_count"], 13);
  EXPECT_EQ(last["load_duration"], 0);
  EXPECT_GT(last["total_duration"], 0);
  EXPECT_GE(last["eval_duration"], 0);
  EXPECT_LE(last["eval_duration"], last["total_duration"]);
  EXPECT_EQ(last.count("prompt_eval_duration"), 0U) << "it is not measured";
}

TEST_F(OllamaReplies, AConversationIsAnsweredWholeAndInLines) {
  start_counting();
  const auto whole = json(chat(R"(,"stream":false)"));
  EXPECT_EQ(whole["message"], Json({{"role", "assistant"}, {"content", "yzé012345678"}}));
  EXPECT_EQ(whole["done"], true);
  EXPECT_EQ(whole["done_reason"], "stop");
  EXPECT_EQ(whole["eval_count"], 13);
  const auto all = lines(chat(""));
  ASSERT_GE(all.size(), 2U);
  std::string text;
  for (const auto& line : all) {
    EXPECT_EQ(line["message"]["role"], "assistant");
    text += line["message"]["content"].get<std::string>();
  }
  EXPECT_EQ(text, "yzé012345678");
  EXPECT_EQ(all.back()["done_reason"], "stop");
}

TEST_F(OllamaReplies, OptionsAreHonoured) {
  start_counting();
  const auto of = [&](const std::string& options) {
    return json(generate(R"(,"prompt":"x","stream":false,"options":{)" + options + "}"));
  };
  const auto cut = of(R"("num_predict":2)");
  EXPECT_EQ(cut["response"], "yz");
  EXPECT_EQ(cut["done_reason"], "length");
  EXPECT_EQ(cut["eval_count"], 2);
  const auto stopped = of(R"("stop":["01"])");
  EXPECT_EQ(stopped["response"], "yzé");
  EXPECT_EQ(stopped["done_reason"], "stop");
}

// The template joins what it is given, and refuses "no".
TEST_F(OllamaReplies, ARawPromptPassesTheTemplateBy) {
  start_counting();
  const auto templated = generate(R"(,"prompt":"no","stream":false)");
  EXPECT_EQ(templated.status, 400);
  EXPECT_EQ(said(templated).rfind("Invalid 'prompt': ", 0), 0U) << said(templated);
  EXPECT_EQ(json(generate(R"(,"prompt":"no","raw":true,"stream":false)"))["response"],
            "pqrstuvwxyzé012345678");
  const auto with_system = json(generate(R"(,"system":"ab","prompt":"x","stream":false)"));
  EXPECT_EQ(with_system["prompt_eval_count"], 3);
}

TEST_F(OllamaReplies, WithoutATemplateAPromptAloneIsContinued) {
  options_.models.clear();
  add_decoder("");
  std::ofstream(folder_ / "counting" / "tokenizer_config.json") << "{}";
  start();
  EXPECT_EQ(json(generate(R"(,"prompt":"x","stream":false)"))["response"], "yzé012345678");
  EXPECT_EQ(generate(R"(,"system":"a","prompt":"x","stream":false)").status, 400);
  EXPECT_EQ(said(chat("")).rfind("Invalid 'messages': ", 0), 0U);
}

TEST_F(OllamaReplies, ATemplateThatCannotBeReadIsNotPassedBy) {
  options_.models.clear();
  add_decoder("");
  std::ofstream(folder_ / "counting" / "tokenizer_config.json")
      << Json{{"chat_template", "{% include 'x' %}"}}.dump();
  start();
  const auto refused = generate(R"(,"prompt":"x","stream":false)");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_NE(said(refused).find("include"), std::string::npos) << said(refused);
  EXPECT_EQ(json(generate(R"(,"prompt":"x","raw":true,"stream":false)"))["response"],
            "yzé012345678");
}

TEST_F(OllamaReplies, ThatAModelShallNotThinkIsToldToItsTemplate) {
  options_.models.clear();
  add_decoder("");
  std::ofstream(folder_ / "counting" / "tokenizer_config.json")
      << Json{{"chat_template",
               "{% if enable_thinking is defined and not enable_thinking %}ab{% endif %}"
               "{% for message in messages %}{{ message.content }}{% endfor %}"}}
             .dump();
  start();
  EXPECT_EQ(json(chat(R"(,"stream":false)"))["prompt_eval_count"], 1);
  EXPECT_EQ(json(chat(R"(,"stream":false,"think":false)"))["prompt_eval_count"], 3);
  const auto of_openai =
      post("/v1/chat/completions", R"({"model":"chat","messages":[{"role":"user","content":"x"}],)"
                                   R"("chat_template_kwargs":{"enable_thinking":false}})");
  EXPECT_EQ(json(of_openai)["usage"]["prompt_tokens"], 3) << of_openai.body;
}

TEST_F(OllamaReplies, NoPromptAsksForTheModelToBeThere) {
  start_beside_encoder();
  const auto loaded = generate("");
  ASSERT_EQ(loaded.status, 200) << loaded.body;
  EXPECT_EQ(json(loaded)["done"], true);
  EXPECT_EQ(json(loaded)["done_reason"], "load");
  EXPECT_EQ(json(loaded)["response"], "");
  const auto chatted = json(post("/api/chat", R"({"model":"chat:latest","messages":[]})"));
  EXPECT_EQ(chatted["done_reason"], "load");
  EXPECT_EQ(chatted["model"], "chat:latest");
  EXPECT_EQ(post("/api/generate", R"({"model":"none"})").status, 404);
  EXPECT_EQ(post("/api/chat", R"({"model":"none"})").status, 404);
  const auto embeds = post("/api/generate", R"({"model":"tiny"})");
  EXPECT_EQ(embeds.status, 400);
  EXPECT_EQ(said(embeds), "Invalid 'model': tiny embeds; ask it at /api/embed.");
  const auto generates = post("/api/embed", R"({"model":"chat","input":"x"})");
  EXPECT_EQ(generates.status, 400);
  EXPECT_EQ(said(generates),
            "Invalid 'model': chat generates; ask it at /api/chat or /api/generate.");
}

TEST_F(OllamaReplies, WhatIsWrongIsSaidInOllamasForm) {
  start_counting("length_max=20");
  EXPECT_EQ(said(generate(R"(,"prompt":"x","images":["aa"])")),
            "Unsupported 'images': expected an empty array.");
  EXPECT_EQ(post("/api/generate", R"({"model":"none","prompt":"x"})").status, 404);
  ASSERT_EQ(chat(R"(,"stream":false)").status, 200);
  const auto longest = chat("", std::string(20, 'a'));
  EXPECT_EQ(longest.status, 400);
  EXPECT_EQ(said(longest),
            "Invalid 'messages': the context is 20 tokens, prompt and reply together, and the "
            "prompt has 20.");
  EXPECT_TRUE(json(get("/api/chat"))["error"].is_string());
}

TEST_F(OllamaReplies, AReplySurvivesTheDeathOfItsWorkers) {
  start_counting("die_after=4");
  EXPECT_EQ(json(generate(R"(,"prompt":"a","stream":false)"))["response"],
            "bcdefghijklmnopqrstuvwxyzé012345678");
}

// The first worker sends five tokens and dies; whoever is given what they stand for dies at once.
TEST_F(OllamaReplies, AReplyThatFailsInTheMiddleSaysSoInALine) {
  options_.audit_file = folder_ / "audit.jsonl";
  start_counting("die_after=5 poison=28");
  const auto all = lines(chat(""));
  ASSERT_GE(all.size(), 2U);
  std::string text;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    text += all[i]["message"]["content"].get<std::string>();
  }
  EXPECT_EQ(text, "yzé0");
  EXPECT_EQ(all.back().size(), 1U);
  EXPECT_NE(all.back()["error"].get<std::string>().find(" workers ended with this request"),
            std::string::npos)
      << all.back();
  const auto entry = audited("/api/chat");
  EXPECT_EQ(entry["status"], 200) << "that was sent";
  EXPECT_EQ(entry["reason"], "internal_error");
}

TEST_F(OllamaReplies, TheAuditLogTellsModelAndTokens) {
  options_.audit_file = folder_ / "audit.jsonl";
  start_counting();
  ASSERT_EQ(generate(R"(,"prompt":"x","options":{"num_predict":2})").status, 200);
  const auto entry = audited("/api/generate");
  EXPECT_EQ(entry["model"], "chat");
  EXPECT_EQ(entry["tokens"], 3) << "one of the prompt, two of the reply";
}

TEST_F(OllamaReplies, AClientThatGoesEndsItsReply) {
  start_counting("wait_at=2");
  auto client = begin_post("/api/generate", R"({"model":"chat","prompt":"a"})");
  read_until(client, R"("response":"c")");
  EXPECT_EQ(metric("generation_running"), "1");
  client.reset();
  expect_cancelled(1);
}

TEST_F(OllamaReplies, AnEndOfTheServerIsToldInALine) {
  start_counting("wait_at=2");
  const auto client = begin_post("/api/generate", R"({"model":"chat","prompt":"a"})");
  read_until(client, R"("response":"c")");
  loop_.post([this] { server_->give_up(); });
  const auto end = read_until(client, "\r\n0\r\n\r\n");
  EXPECT_NE(end.find(R"({"error":"the server ended before the answer)"), std::string::npos) << end;
}

TEST_F(OllamaReplies, AReplyEndsAtItsDeadline) {
  start_counting("wait_at=1");
  const auto late = call("POST", "/api/generate", {kJsonBody, {"X-Request-Timeout-Ms", "50"}},
                         R"({"model":"chat","prompt":"a","stream":false})");
  EXPECT_EQ(late.status, 504) << late.body;
  EXPECT_EQ(said(late), "no end of the reply within the time allowed: 0.05 s");
}

TEST_F(OllamaReplies, AKeysLimitsAreThoseOfTheOtherRoutesForReplies) {
  // SHA-256 of "test-key", by coreutils' sha256sum.
  use_keys(
      "keys:\n  - name: ci\n    sha256: "
      "62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef\n"
      "    requests_per_minute: 2\n");
  start_counting();
  const HttpHeaders key{{"Authorization", "Bearer test-key"}};
  const std::string body = R"({"model":"chat","prompt":"x"})";
  const auto first = post("/api/generate", body, key);
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.header("x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(post("/v1/completions", body, key).status, 200);
  const auto refused =
      post("/api/chat", R"({"model":"chat","messages":[{"role":"user","content":"x"}]})", key);
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.header("retry-after"));
  EXPECT_TRUE(json(refused)["error"].is_string());
  EXPECT_EQ(post("/api/generate", body).status, 401);
}

TEST_F(OllamaReplies, ADecoderIsListedAndShown) {
  start_beside_encoder();
  const Json listed = json(get("/api/tags"))["models"][1];
  EXPECT_EQ(listed["model"], "chat");
  EXPECT_EQ(listed["details"]["family"], "llama");
  EXPECT_EQ(listed["details"]["format"], "safetensors");
  const Json loaded = json(get("/api/ps"))["models"][1];
  EXPECT_EQ(loaded["name"], "chat");
  EXPECT_EQ(loaded["details"], listed["details"]);
  EXPECT_EQ(loaded["context_length"], 100);
  EXPECT_EQ(loaded["size_vram"], 0) << "this one is on CPUs";
  const auto demand = decoder_demand(folder_ / "counting", DecoderPrecision::Own, 128);
  ASSERT_TRUE(demand) << demand.error().message;
  EXPECT_GE(loaded["size"].get<std::uint64_t>(), demand->total()) << "keys and values come on top";
  EXPECT_FALSE(loaded.contains("digest"));
  EXPECT_FALSE(loaded.contains("expires_at"));
  const Json shown = json(post("/api/show", R"({"model":"chat:latest"})"));
  EXPECT_EQ(shown["capabilities"], Json{"completion"});
  EXPECT_EQ(shown["model_info"]["llama.context_length"], 100);
}

TEST_F(OllamaReplies, ADecoderOnGpusIsInTheirMemory) {
  for (auto& device : options_.devices) device.kind = DeviceKind::Cuda;
  start_counting();
  const Json loaded = json(get("/api/ps"))["models"][0];
  EXPECT_EQ(loaded["name"], "chat");
  EXPECT_GT(loaded["size_vram"].get<std::uint64_t>(), 0U);
  EXPECT_EQ(loaded["size_vram"], loaded["size"]);
}

}  // namespace
}  // namespace muster
