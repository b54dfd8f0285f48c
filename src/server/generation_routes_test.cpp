// Replies over HTTP, from a decoder that counts (stand_ins/counting_worker).
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/connect_fixture.h"
#include "server/generation_fixture.h"

namespace muster {
namespace {

// SHA-256 of "test-key", by coreutils' sha256sum.
constexpr std::string_view kKeys = R"(keys:
  - name: reader
    sha256: 62af8704764faf8ea82fc61ce9c4c3908b6cb97d463a634e9e587d7c885db0ef
    scopes: [embed, read]
)";
const std::pair<std::string, std::string> kKeyHeader{"Authorization", "Bearer test-key"};
const std::pair<std::string, std::string> kJsonBody{"Content-Type", "application/json"};
constexpr std::string_view kAskX = R"({"model":"chat","prompt":"x","max_tokens":1})";

class GenerationRoutes : public GenerationFixture {};

TEST_F(GenerationRoutes, AnswersAConversationWhole) {
  start_counting();
  const auto answer = ask_chat("");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto reply = json(answer);
  EXPECT_TRUE(reply["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(reply["object"], "chat.completion");
  EXPECT_EQ(reply["model"], "chat");
  EXPECT_EQ(reply["choices"].size(), 1U);
  EXPECT_EQ(reply["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "yzé012345678");
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(reply["usage"], Json({{"prompt_tokens", 1},
                                  {"completion_tokens", 13},
                                  {"total_tokens", 14},
                                  {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(GenerationRoutes, StreamsAConversationWithItsUsage) {
  start_counting();
  const auto answer = ask_chat(R"(,"stream":true,"stream_options":{"include_usage":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(find_header(answer.headers, "content-type"), "text/event-stream; charset=utf-8");
  const auto all = events(answer);
  ASSERT_GE(all.size(), 4U);
  EXPECT_EQ(all[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(all[0]["choices"][0]["delta"], Json({{"role", "assistant"}, {"content", ""}}));
  std::string text;
  for (std::size_t i = 1; i + 2 < all.size(); ++i) {
    EXPECT_EQ(all[i]["id"], all[0]["id"]);
    EXPECT_EQ(all[i]["choices"][0]["finish_reason"], Json(nullptr));
    EXPECT_EQ(all[i]["usage"], Json(nullptr));
    text += all[i]["choices"][0]["delta"]["content"].get<std::string>();
  }
  EXPECT_EQ(text, "yzé012345678");
  const auto& last = all[all.size() - 2];
  EXPECT_EQ(last["choices"][0]["delta"], Json::object());
  EXPECT_EQ(last["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(all.back()["choices"], Json::array());
  EXPECT_EQ(all.back()["usage"], Json({{"prompt_tokens", 1},
                                       {"completion_tokens", 13},
                                       {"total_tokens", 14},
                                       {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(GenerationRoutes, ContinuesATextWholeAndStreamed) {
  start_counting();
  const auto whole =
      json(post("/v1/completions", R"({"model":"chat","prompt":"x","max_tokens":5})"));
  EXPECT_TRUE(whole["id"].get<std::string>().starts_with("cmpl-"));
  EXPECT_EQ(whole["object"], "text_completion");
  EXPECT_EQ(whole["choices"][0]["text"], "yzé0");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
  const auto all =
      events(post("/v1/completions", R"({"model":"chat","prompt":"x","stop":"01","stream":true})"));
  std::string text;
  for (const auto& event : all) {
    EXPECT_EQ(event.count("usage"), 0U) << "it was not asked for";
    text += event["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, "yzé");
  EXPECT_EQ(all.back()["choices"][0]["finish_reason"], "stop");
}

TEST_F(GenerationRoutes, AReplySurvivesTheDeathOfItsWorkers) {
  start_counting("die_after=4");
  EXPECT_EQ(json(ask_chat("", "a"))["choices"][0]["message"]["content"],
            "bcdefghijklmnopqrstuvwxyzé012345678");
}

// The first worker sends five tokens and dies; whoever is given what they stand for dies at once.
TEST_F(GenerationRoutes, AReplyThatFailsInTheMiddleSaysSoInItsStream) {
  options_.audit_file = folder_ / "audit.jsonl";
  start_counting("die_after=5 poison=28");
  const auto answer = ask_chat(R"(,"stream":true)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto all = events(answer);
  ASSERT_GE(all.size(), 2U);
  std::string text;
  for (std::size_t i = 1; i + 1 < all.size(); ++i) {
    text += all[i]["choices"][0]["delta"]["content"].get<std::string>();
  }
  EXPECT_EQ(text, "yzé0");
  const auto& error = all.back()["error"];
  EXPECT_EQ(error["type"], "server_error");
  EXPECT_NE(error["message"].get<std::string>().find(" workers ended with this request"),
            std::string::npos)
      << error;
  loop_.stop();
  thread_.join();
  server_.reset();
  std::ifstream audit(options_.audit_file);
  std::string line;
  while (std::getline(audit, line) && line.find("/v1/chat/completions") == std::string::npos) {
  }
  ASSERT_FALSE(line.empty());
  EXPECT_EQ(Json::parse(line)["status"], 200) << "that was sent";
  EXPECT_EQ(Json::parse(line)["reason"], "internal_error");
}

TEST_F(GenerationRoutes, WhatIsWrongIsNamed) {
  start_counting("length_max=20");
  const auto refused = [&](const HttpAnswer& answer, int status, const std::string& field) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(json(answer)["error"]["param"], field) << answer.body;
  };
  refused(ask_chat(R"(,"max_tokens":0)"), 400, "max_tokens");
  refused(ask_chat(R"(,"temperature":-1)"), 400, "temperature");
  refused(ask_chat(R"(,"functions":[])"), 400, "functions");
  refused(ask_chat(R"(,"logit_bias":{"999999":1})"), 400, "logit_bias");
  refused(ask_chat("", "no"), 400, "messages");
  ASSERT_EQ(ask_chat(R"(,"max_tokens":1)").status, 200);
  const auto longest = ask_chat(R"(,"stream":true)", std::string(20, 'a'));
  refused(longest, 400, "messages");
  EXPECT_EQ(json(longest)["error"]["code"], "context_length_exceeded");
  refused(post("/v1/completions", R"({"model":"none","prompt":"x"})"), 404, "model");
  refused(post("/v1/completions", R"({"model":"chat","prompt":[999]})"), 400, "prompt");
  const auto text = get("/metrics").body;
  const std::string ended = "muster_generation_ended_total{reason=";
  EXPECT_NE(text.find(ended + "\"failed\"} 0\n"), std::string::npos) << "no device is at fault";
  EXPECT_EQ(text.find(ended + "\"invalid\"} 0\n"), std::string::npos);
}

TEST_F(GenerationRoutes, AnAnswerMayBeSentBackAsItCame) {
  start_counting();
  auto turns = Json::array({{{"role", "user"}, {"content", "x"}}});
  turns.push_back(json(ask_chat(R"(,"max_tokens":2)"))["choices"][0]["message"]);
  turns.push_back({{"role", "user"}, {"content", "y"}});
  const Json body{{"model", "chat"}, {"messages", turns}, {"max_tokens", 2}};
  const auto answer = post("/v1/chat/completions", body.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto refused = ask_chat(R"(,"max_tokens":1)", R"(x","refusal":"no)");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(message(refused), "Unsupported 'messages.refusal': expected null.");
}

TEST_F(GenerationRoutes, AStreamDoesNotHoldTheMemoryOfItsBody) {
  start_counting("wait_at=1");
  const std::string body =
      R"({"model":"chat","prompt":"a","stream":true)" + std::string(200'000, ' ') + "}";
  auto client = connect_to(server_->port());
  const auto request =
      "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  ASSERT_EQ(::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  read_until(client, "data: ");
  EXPECT_EQ(metric("http_memory_bytes"), "0");
}

TEST_F(GenerationRoutes, AModelIsRefusedForWhatItDoesNotDoAndToldWhatItDoes) {
  add_decoder("");
  start();  // beside the model that embeds
  const auto embedded = post("/v1/embeddings", R"({"model":"chat","input":"x"})");
  EXPECT_EQ(embedded.status, 400);
  EXPECT_EQ(json(embedded)["error"]["message"],
            "Invalid 'model': chat generates; ask it at /v1/chat/completions or /v1/completions.");
  EXPECT_EQ(json(embedded)["error"]["param"], "model");
  const auto name = options_.models.front().name;
  const auto chat = post("/v1/completions", R"({"model":")" + name + R"(","prompt":"x"})");
  EXPECT_EQ(chat.status, 400);
  EXPECT_EQ(json(chat)["error"]["message"],
            "Invalid 'model': " + name + " embeds; ask it at /v1/embeddings.");
}

TEST_F(GenerationRoutes, AnUnknownModelIsNotFoundWhereNoneEmbeds) {
  start_counting();
  const auto answer = post("/v1/embeddings", R"({"model":"minilm","input":"x"})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(json(answer)["error"]["message"],
            "the model does not exist: minilm; none is served here that embeds or reranks");
}

// Either kind of model has a tokenizer that would do.
TEST_F(GenerationRoutes, CountingTokensWhereNoneEmbedsNamesAllThatWouldDo) {
  start_counting();
  const std::string wanted = "no served model embeds or reranks";
  const auto counted = post("/v1/tokenize", R"({"input":"x"})");
  EXPECT_EQ(counted.status, 404);
  EXPECT_EQ(message(counted), wanted);
  for (const auto& [route, body] :
       {std::pair("/tokenize", R"({"inputs":"x"})"), std::pair("/decode", R"({"ids":[1]})")}) {
    const auto answer = post(route, body);
    EXPECT_EQ(answer.status, 404) << route;
    EXPECT_EQ(json(answer)["error"], wanted) << route;
  }
}

TEST_F(GenerationRoutes, AClientThatGoesEndsItsReply) {
  start_counting("wait_at=2");
  auto client = begin_stream();
  read_until(client, R"("text":"c")");
  EXPECT_EQ(metric("generation_running"), "1");
  client.reset();
  expect_cancelled(1);
}

// Before its first token it has a status of its own, and behind that it is an event of the stream.
TEST_F(GenerationRoutes, AReplyEndsAtItsDeadline) {
  start_counting("wait_at=1");
  const auto late = call("POST", "/v1/completions", {kJsonBody, {"X-Request-Timeout-Ms", "50"}},
                         R"({"model":"chat","prompt":"a"})");
  EXPECT_EQ(late.status, 504) << late.body;
  EXPECT_EQ(json(late)["error"]["code"], "deadline_exceeded");
  EXPECT_EQ(message(late), "no end of the reply within the time allowed: 0.05 s");
  EXPECT_EQ(find_header(late.headers, "x-should-retry"), "false");

  const auto all =
      events(call("POST", "/v1/completions", {kJsonBody, {"X-Request-Timeout-Ms", "1000"}},
                  R"({"model":"chat","prompt":"a","stream":true})"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["choices"][0]["text"], "b");
  EXPECT_EQ(all[1]["error"]["code"], "deadline_exceeded");
  EXPECT_EQ(metric("generation_running"), "0");
  EXPECT_NE(get("/metrics").body.find("muster_generation_ended_total{reason=\"expired\"} 2\n"),
            std::string::npos);

  const auto wrong =
      call("POST", "/v1/chat/completions", {kJsonBody, {"X-Request-Timeout-Ms", "soon"}},
           R"({"model":"chat","messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(json(wrong)["error"]["param"], "X-Request-Timeout-Ms");
}

TEST_F(GenerationRoutes, AnEndOfTheServerIsToldInTheStream) {
  start_counting("wait_at=2");
  const auto client = begin_stream();
  read_until(client, R"("text":"c")");
  loop_.post([this] { server_->give_up(); });
  const auto end = read_until(client, "data: [DONE]\n\n\r\n0\r\n\r\n");
  EXPECT_NE(end.find("the server ended before the answer"), std::string::npos) << end;
}

// The next two: a word for the verdict needs no key, and names do.
TEST_F(GenerationRoutes, HealthAsksTheWorkersOfADecoderToo) {
  use_keys(kKeys);
  start_counting();
  const HttpHeaders key{kKeyHeader};
  while (call("GET", "/health", key).status != 200) std::this_thread::yield();
  const auto health = json(call("GET", "/health", key));
  EXPECT_EQ(health["status"], "ok");
  ASSERT_EQ(health["workers"].size(), 2U) << "those of its two devices, and no others";
  EXPECT_EQ(health["workers"][0],
            Json({{"device", "cpu:0"}, {"model", "chat"}, {"state", "ready"}, {"is_well", true}}));
  EXPECT_EQ(health["workers"][1]["device"], "cpu:1");
  EXPECT_EQ(json(get("/health")), Json({{"status", "ok"}}));
}

TEST_F(GenerationRoutes, ADecoderThatCannotBeLoadedIsTold) {
  use_keys(kKeys);
  options_.models.clear();
  add_decoder("fail_load");
  start_unready();
  const HttpHeaders key{kKeyHeader};
  const auto state_of = [&](std::size_t worker) {
    return json(call("GET", "/health", key))["workers"][worker]["state"];
  };
  for (const std::size_t worker : {0U, 1U}) {
    while (state_of(worker) != "given up") std::this_thread::yield();
  }
  EXPECT_EQ(json(call("GET", "/readyz", key))["reason"], "chat: told not to load");
  EXPECT_EQ(json(get("/readyz"))["reason"], "a model is not ready");
  const auto answer = call("GET", "/health", key);
  EXPECT_EQ(answer.status, 503);
  const auto health = json(answer);
  EXPECT_EQ(health["status"], "failed");
  EXPECT_EQ(health["workers"][0]["reason"], "told not to load");
  EXPECT_EQ(json(get("/health")), Json({{"status", "failed"}}));
  const auto refused = call("POST", "/v1/completions", {kKeyHeader, kJsonBody}, kAskX);
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_EQ(message(refused), "no device can load chat") << "why is for those who may read";
  EXPECT_TRUE(find_header(refused.headers, "retry-after"));
}

// A device that loads for the first time has not failed.
TEST_F(GenerationRoutes, ADecoderThatIsBeingLoadedIsStarting) {
  options_.models.clear();
  add_decoder("hang_at_load");
  start_unready();
  const auto answer = get("/health");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(json(answer)["status"], "starting") << answer.body;
}

// An embedding model beside it: the server is ready, and not all is well.
TEST_F(GenerationRoutes, ADecoderThatCannotBeLoadedCountsBesideOtherModels) {
  add_decoder("fail_load");
  start();
  while (json(get("/health"))["workers"].back()["state"] != "given up") std::this_thread::yield();
  EXPECT_EQ(json(get("/multigpu/health"))["status"], "degraded") << "its devices lack a model";
  const auto answer = get("/health");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(json(answer)["status"], "degraded");
  EXPECT_EQ(json(answer)["workers"].size(), 4U);
  EXPECT_EQ(get("/readyz").status, 200);
}

TEST_F(GenerationRoutes, AKeyIsToldWhatIsLeftOfItsLimitsOnReplies) {
  use_keys(std::string(kKeys) + "    requests_per_minute: 1\n");
  start_counting();
  const HttpHeaders headers{kKeyHeader, kJsonBody};
  const auto answer = call("POST", "/v1/completions", headers, kAskX);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(find_header(answer.headers, "x-ratelimit-limit-requests"), "1");
  EXPECT_EQ(find_header(answer.headers, "x-ratelimit-remaining-requests"), "0");
  EXPECT_EQ(call("POST", "/v1/completions", headers, kAskX).status, 429);
}

TEST_F(GenerationRoutes, MoreRepliesThanAKeyMayHaveAtOnceAreRefusedByName) {
  use_keys(std::string(kKeys) + "    requests_at_once: 1\n");
  start_counting();
  for (const std::string field : {"n", "best_of"}) {
    const Json body{{"model", "chat"}, {"prompt", "x"}, {"max_tokens", 1}, {field, 2}};
    const auto answer = call("POST", "/v1/completions", {kKeyHeader, kJsonBody}, body.dump());
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(json(answer)["error"]["param"], field);
    EXPECT_EQ(message(answer),
              "Invalid '" + field + "': key reader: 1 request at once, and 2 are asked for.");
  }
  EXPECT_EQ(call("POST", "/v1/completions", {kKeyHeader, kJsonBody}, kAskX).status, 200);
}

TEST_F(GenerationRoutes, ARequestForADecoderThatIsBeingLoadedIsToComeAgain) {
  add_decoder("hang_at_load");
  options_.models.clear();
  start_unready();
  const auto early = post("/v1/completions", kAskX);
  EXPECT_EQ(early.status, 503) << early.body;
  EXPECT_EQ(message(early), "chat is being loaded");
  EXPECT_EQ(find_header(early.headers, "retry-after"), "1");
  EXPECT_EQ(json(get("/readyz"))["reason"], "chat is loading");
}

// Clients of that decoder would be refused.
TEST_F(GenerationRoutes, AServerIsNotReadyBeforeAllThatItWasStartedWithHasLoaded) {
  add_decoder("hang_at_load");
  start_unready();
  while (post("/v1/embeddings", R"({"model":"tiny","input":"a"})").status != 200) {
    std::this_thread::yield();
  }
  const auto answer = get("/readyz");
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_EQ(json(answer)["reason"], "chat is loading");
  EXPECT_NE(get("/metrics").body.find("\nmuster_ready 1\n"), std::string::npos)
      << "an alert would say that it takes no requests";
}

// Nobody is told that a model is missing that somebody has taken away.
TEST_F(GenerationRoutes, WhereAllDecodersAreLeavingAnEmptyNameIsToldSo) {
  start_counting("wait_at=2");
  const auto client = begin_stream();
  read_until(client, R"("text":"c")");
  const auto unloaded = post("/v1/models/unload", R"({"model":"chat"})");
  EXPECT_EQ(json(unloaded)["in_flight_replies"], 1);
  const auto refused = post("/v1/completions", R"({"model":"","prompt":"x"})");
  EXPECT_EQ(refused.status, 404) << refused.body;
  EXPECT_EQ(message(refused),
            "chat was unloaded and takes no new requests; no other model that generates is served "
            "here");
  const auto device = json(get("/v1/devices"))["devices"][0];
  EXPECT_EQ(device["decoders"][0]["is_unloading"], true);
  EXPECT_EQ(json(get("/v1/models"))["data"], Json::array());
  EXPECT_EQ(json(get("/readyz"))["reason"], "no model is served");
  EXPECT_EQ(get("/metrics").body.find(R"(model="chat")"), std::string::npos)
      << "its name may be another one's already";
}

TEST_F(GenerationRoutes, AServerWithADecoderAloneStartsNoOtherWorkers) {
  start_counting();
  const auto devices = json(get("/v1/devices"))["devices"];
  ASSERT_EQ(devices.size(), 2U);
  for (const auto& device : devices) {
    EXPECT_EQ(device["pid"], nullptr) << device;
    EXPECT_EQ(device["engine_class"], nullptr);
    EXPECT_NE(device["decoders"][0]["pid"], nullptr);
  }
  while (json(get("/multigpu/health"))["status"] != "healthy") std::this_thread::yield();
  EXPECT_EQ(json(get("/v1/devices"))["devices"][1]["state"], "ready");
}

// A device has drained when the reply on it has ended, too.
TEST_F(GenerationRoutes, ADrainWaitsForTheRepliesOfTheDevice) {
  add_decoder("wait_at=2");
  options_.decoders.front().devices = {"cpu:0"};
  start_whole();
  while (json(get("/v1/models/chat"))["state"] != "ready") std::this_thread::yield();
  auto client = begin_stream();
  read_until(client, R"("text":"c")");
  const auto drained = post("/v1/admin/drain", R"({"device":"cpu:0"})");
  EXPECT_EQ(drained.status, 200);
  EXPECT_EQ(json(drained)["state"], "draining");
  // The worker for vectors has nothing to end, the decoder's has.
  const auto device = [&] { return json(get("/v1/devices"))["devices"][0]; };
  while (!device()["pid"].is_null()) std::this_thread::yield();
  EXPECT_EQ(device()["state"], "draining");
  EXPECT_EQ(device()["decoders"][0]["state"], "draining");
  EXPECT_EQ(device()["decoders"][0]["in_flight_replies"], 1);
  const auto refused = post("/v1/completions", kAskX);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(message(refused), "every device of chat is drained");
  client.reset();
  while (device()["state"] != "drained") std::this_thread::yield();
  EXPECT_EQ(json(get("/v1/models/chat"))["state"], "drained");
  EXPECT_EQ(get("/health").status, 200) << "what rests is meant to";

  ::setenv("COUNTING_WORKER", "", 1);
  const auto resumed = post("/v1/admin/resume", R"({"device":"cpu:0"})");
  EXPECT_EQ(json(resumed)["state"], "restarting");
  while (device()["state"] != "ready") std::this_thread::yield();
  EXPECT_EQ(post("/v1/completions", kAskX).status, 200);
}

TEST_F(GenerationRoutes, ARestartOfADeviceStartsItsDecodersAgain) {
  add_decoder("fail_load");
  options_.models.clear();
  start_unready();
  const auto worker = [&](std::size_t place) {
    return json(get("/v1/devices"))["devices"][place]["decoders"][0];
  };
  for (const std::size_t place : {0U, 1U}) {
    while (worker(place)["state"] != "given up") std::this_thread::yield();
  }
  EXPECT_EQ(json(get("/v1/devices"))["devices"][0]["reason"], "told not to load");
  EXPECT_EQ(worker(0)["failure_kind"], "Corrupt");
  ::setenv("COUNTING_WORKER", "", 1);
  EXPECT_EQ(post("/v1/admin/restart", R"({"device":"cpu:0"})").status, 200);
  while (worker(0)["state"] != "ready") std::this_thread::yield();
  EXPECT_EQ(worker(0)["failure_kind"], nullptr);
  EXPECT_EQ(worker(1)["state"], "given up") << "the other one was not asked for";
  EXPECT_EQ(post("/v1/completions", kAskX).status, 200);
}

TEST_F(GenerationRoutes, TheWorkersOfDecodersAreMeasured) {
  options_.models.clear();
  add_decoder("");
  start_whole();
  ASSERT_EQ(post("/v1/completions", kAskX).status, 200);
  const auto text = get("/metrics").body;
  for (const auto* line :
       {R"(muster_model_state{model="chat",state="ready"} 1)",
        R"(muster_generation_worker_state{model="chat",device="cpu:0",state="ready"} 1)",
        R"(muster_generation_worker_running{model="chat",device="cpu:0"} 0)",
        R"(muster_generation_worker_restarts_total{model="chat",device="cpu:0"} 0)",
        R"(muster_generation_worker_kv_cache_usage_ratio{model="chat",device="cpu:0"} 0)",
        R"(muster_generation_worker_preemptions_total{model="chat",device="cpu:0"} 0)",
        R"(muster_generation_worker_draft_tokens_total{model="chat",device="cpu:0"} 0)",
        R"(muster_generation_worker_accepted_tokens_total{model="chat",device="cpu:0"} 0)",
        R"(muster_generation_model_requests_total{model="chat"} 1)",
        R"(muster_generation_model_prompt_tokens_total{model="chat"} 1)",
        R"(muster_generation_model_tokens_total{model="chat"} 1)"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << " is not in\n" << text;
  }
}

TEST_F(GenerationRoutes, AnEmptyNameStandsForTheFirstModel) {
  start_counting();
  const auto reply = json(post("/v1/completions", R"({"model":"","prompt":"x","max_tokens":1})"));
  EXPECT_EQ(reply["model"], "chat");
  EXPECT_EQ(reply["choices"][0]["text"], "y");
}

TEST_F(GenerationRoutes, TheModelIsListedAndCounted) {
  start_counting();
  ASSERT_EQ(ask_chat("").status, 200);
  const auto model = json(get("/v1/models"))["data"][0];
  EXPECT_EQ(model["id"], "chat");
  EXPECT_EQ(model["task"], "generate");
  EXPECT_EQ(model["state"], "ready");
  EXPECT_EQ(model["length_max"], 100);
  EXPECT_EQ(json(get("/v1/models/chat"))["id"], "chat");
  EXPECT_EQ(metric("generation_prompt_tokens_total"), "1");
  EXPECT_EQ(metric("generation_tokens_total"), "13");
  EXPECT_EQ(metric("generation_first_token_seconds_count"), "1");
  EXPECT_EQ(metric("generation_token_seconds_count"), "12");
}

// 40 ids: two blocks of 16, and the last id is computed in any case.
TEST_F(GenerationRoutes, WhatOfAPromptWasCachedIsToldAndCounted) {
  start_counting();
  const std::string prompt(40, 'a');
  const auto ask = [&] { return json(ask_chat(R"(,"max_tokens":1)", prompt))["usage"]; };
  EXPECT_EQ(ask()["prompt_tokens_details"]["cached_tokens"], 0);
  const auto again = ask();
  EXPECT_EQ(again["prompt_tokens_details"]["cached_tokens"], 32);
  EXPECT_EQ(again["prompt_tokens"], 40);
  EXPECT_EQ(metric("prefix_cache_queries_total"), "80");
  EXPECT_EQ(metric("prefix_cache_hits_total"), "32");
}

// SHA-256 of "other-key", by coreutils' sha256sum, behind the other's entry.
constexpr std::string_view kOtherKey = R"(  - name: other
    sha256: 580843d03d2216ff1a275d0991bad66e4d1af871171d929e9de604b7959f9bca
    scopes: [embed]
)";

class SharedBeginnings : public GenerationFixture, public testing::WithParamInterface<bool> {};

// What `cache_scope` says of vectors it says of prompts.
TEST_P(SharedBeginnings, OfTwoKeysAreFoundWhereTheyAreToldTo) {
  options_.is_cache_shared = GetParam();
  use_keys(std::string(kKeys) + std::string(kOtherKey));
  start_counting();
  const auto cached = [&](const char* key) {
    const Json body{{"model", "chat"}, {"prompt", std::string(40, 'a')}, {"max_tokens", 2}};
    const auto answer =
        call("POST", "/v1/completions",
             {{"Authorization", std::string("Bearer ") + key}, kJsonBody}, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(json(answer)["choices"][0]["text"], "bc");
    return json(answer)["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>();
  };
  EXPECT_EQ(cached("test-key"), 0);
  EXPECT_EQ(cached("other-key"), GetParam() ? 32 : 0);
  EXPECT_EQ(cached("test-key"), 32) << "its own";
  EXPECT_EQ(cached("other-key"), 32);
}

INSTANTIATE_TEST_SUITE_P(Scopes, SharedBeginnings, testing::Bool());

TEST_F(GenerationRoutes, WithoutAPrefixCacheNothingIsLookedUp) {
  options_.has_prefix_cache = false;
  start_counting();
  for (int i = 0; i < 2; ++i) {
    const auto usage = json(ask_chat(R"(,"max_tokens":1)", std::string(40, 'a')))["usage"];
    EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 0);
  }
  EXPECT_EQ(metric("prefix_cache_queries_total"), "0");
}

TEST_F(ServerFixture, AServerWithoutADecoderSaysSo) {
  start();
  const auto answer = post("/v1/completions", R"({"model":"none","prompt":"x"})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(message(answer),
            "no model that generates is served here, and none of the name none: start with muster "
            "serve FILE.gguf, or muster ctl load FILE.gguf");
  const auto other = post("/v1/completions", R"({"model":"tiny","prompt":"x"})");
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(message(other), "Invalid 'model': tiny embeds; ask it at /v1/embeddings.");
}

}  // namespace
}  // namespace muster
