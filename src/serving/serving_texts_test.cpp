// What becomes of a call's texts before a device has them, and of its rows: admission, long texts,
// lanes, what is charged, what is cached. On real worker processes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "base/cpu_time.h"
#include "jobs/precision_choice.h"
#include "serving/serving_fixture.h"

namespace muster {
namespace {

using ServingTextsTest = InferenceServiceTest;

std::vector<std::string> words(std::mt19937& random, std::size_t texts, std::size_t count) {
  static const std::vector<std::string> kWords{"the",  "queue",  "of",   "a",       "server",
                                               "that", "starts", "with", "nothing", "measured"};
  std::vector<std::string> all(texts);
  for (auto& text : all) {
    for (std::size_t i = 0; i < count; ++i) text += kWords[random() % kWords.size()] + " ";
  }
  return all;
}

// No device has loaded the model while this runs, so no speed is known: 500 tokens a second stand
// for it (scheduler/admission.h), 1,000 within the budget. What is let in is most of that and no
// more, though no text has ever been counted: the first call's own text tells how long they are.
TEST_F(ServingTextsTest, AFreshServerLetsInWhatTheBudgetHolds) {
  start();
  std::mt19937 random(1);
  std::uint64_t tokens_in = 0;
  std::uint64_t refused_count = 0;
  loop_.post([&] {
    for (int call = 0; call < 60; ++call) {
      const auto texts = words(random, 10, 3);
      std::uint64_t tokens = 0;
      for (const auto& text : texts) tokens += ids_of(text).size();
      const auto id = service_->embed(
          EmbedCall{.options = {.lane = Lane::Bulk}, .texts = texts}, [&](const Answer& answer) {
            if (std::holds_alternative<EmbedAnswer>(answer)) return;
            EXPECT_GE(std::get<CallError>(answer).retry_after, std::chrono::seconds(1));
            ++refused_count;
          });
      tokens_in += id == 0 ? 0 : tokens;
    }
    loop_.stop();
  });
  loop_.run();
  EXPECT_GE(tokens_in, 800U);
  EXPECT_LE(tokens_in, 1200U);
  EXPECT_GT(refused_count, 0U);
}

// On one device, which answers in the order in which it is given texts. The call with the long text
// has none with the fleet while that one is encoded.
TEST_F(ServingTextsTest, ALongTextIsEncodedAsideAndAQueryGoesBeforeIt) {
  options_.devices.resize(1);
  start();
  std::string marks = "long ";
  for (int i = 0; i < 300'000; ++i) marks += "\xCC\x81";  // a combining accent, which is stripped
  marks += "end";
  std::vector<std::string> order;
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {marks, "short"}}, [&order, on_done](const Answer& given) {
      order.emplace_back("long");
      on_done(given);
    });
    EXPECT_EQ(service_->fleet().pending_count, 0U);
    service_->embed(EmbedCall{.texts = {"query"}},
                    [&order](const Answer&) { order.emplace_back("query"); });
    EXPECT_EQ(service_->fleet().pending_count, 1U);
  });
  EXPECT_EQ(vectors(answer).rows[0], echo_of("long end").first);
  EXPECT_EQ(vectors(answer).rows[vectors(answer).dim], echo_of("short").first);
  EXPECT_EQ(order, (std::vector<std::string>{"query", "long"}));
}

// Thirty texts take thirty times as much work as one; who comes after the clients have gone waits
// for the one that is being encoded at most. In CPU time, which a busy machine does not lengthen.
TEST_F(ServingTextsTest, NobodyWaitsForTheLongTextsOfClientsThatHaveGone) {
  start();
  std::string marks = "long ";
  for (int i = 0; i < 300'000; ++i) marks += "\xCC\x81";  // a combining accent, which is stripped
  std::vector<std::string> others(30, marks);
  for (std::size_t i = 0; i < others.size(); ++i) others[i] += std::to_string(i);
  const auto cpu_seconds_of = [&](const std::function<void()>& before) {
    const auto begin = process_cpu_seconds();
    wait_for<Answer>([&](auto on_done) {
      before();
      service_->embed(EmbedCall{.texts = {marks}}, on_done);
    });
    return process_cpu_seconds() - begin;
  };
  vectors(embed_texts({"ready"}));
  cpu_seconds_of([] {});
  service_->clear_cache();
  const auto alone = cpu_seconds_of([] {});
  service_->clear_cache();
  const auto behind_others = cpu_seconds_of([&] {
    std::vector<CallId> gone;
    for (auto& other : others) {
      gone.push_back(service_->embed(EmbedCall{.texts = {std::move(other)}}, [](const Answer&) {}));
      EXPECT_NE(gone.back(), 0U);
    }
    for (const auto id : gone) service_->cancel(id);
  });
  EXPECT_LT(behind_others, 10 * alone);
}

TEST_F(ServingTextsTest, AQueryIsReadOnceForAllDocumentsOfARerank) {
  const auto folder = folder_ / "ranker";
  std::filesystem::copy(tiny(), folder, std::filesystem::copy_options::recursive);
  std::filesystem::permissions(folder / "config.json", std::filesystem::perms::owner_all);
  std::ifstream file(folder / "config.json");
  auto config = nlohmann::json::parse(file);
  config["architectures"] = {"BertForSequenceClassification"};
  config["id2label"] = {{"0", "LABEL_0"}};
  std::ofstream(folder / "config.json") << config.dump();
  std::filesystem::remove(folder / "modules.json");
  options_.models.push_back({.name = "ranker", .model = folder.string()});
  start();
  std::string marks = "long ";
  for (int i = 0; i < 300'000; ++i) marks += "\xCC\x81";  // a combining accent, which is stripped
  marks += "end";
  const auto seconds_of = [&](std::size_t document_count) {
    const RerankCall call{.options = {.model = "ranker"},
                          .query = marks,
                          .texts = std::vector<std::string>(document_count, "short")};
    const auto begin = process_cpu_seconds();
    using Reranked = std::variant<RerankAnswer, CallError>;
    const auto answer = wait_for<Reranked>([&](auto on_done) { service_->rerank(call, on_done); });
    EXPECT_TRUE(std::holds_alternative<RerankAnswer>(answer));
    return process_cpu_seconds() - begin;
  };
  seconds_of(1);
  const auto of_one = seconds_of(1);
  EXPECT_LT(seconds_of(100), 20 * of_one);
}

TEST_F(ServingTextsTest, TokenizesManyTextsInTurnsAndAQueryGoesBeforeThem) {
  start();
  std::mt19937 random(2);
  const auto texts = words(random, 2000, 200);
  bool is_query_sent = false;  // before the last of them is tokenised
  bool is_answered = false;
  std::optional<TokenizeAnswer> tokenized;
  loop_.post([&] {
    service_->tokenize({.texts = texts}, [&](const std::variant<TokenizeAnswer, CallError>& got) {
      is_query_sent = is_answered || service_->fleet().pending_count == 1;
      tokenized = std::get<TokenizeAnswer>(got);
    });
    service_->embed(EmbedCall{.texts = {"query"}}, [&](const Answer&) { is_answered = true; });
  });
  run_until([&] { return is_answered && tokenized; });
  EXPECT_TRUE(is_query_sent);
  ASSERT_TRUE(tokenized);
  ASSERT_EQ(tokenized->texts.size(), texts.size());
  for (const std::size_t i : {0U, 1U, 1999U}) EXPECT_EQ(tokenized->texts[i].ids, ids_of(texts[i]));
  EXPECT_EQ(service_->status().waiting_call_count, 0U);
}

TEST_F(ServingTextsTest, AKeysLimitOnRequestsHoldsForTokenizingToo) {
  start();
  service_->reconfigure(options_, {{"ci", {.requests_per_minute = 1}}});
  const TokenizeCall call{.options = {.caller = "ci"}, .texts = {"a"}};
  EXPECT_EQ(tokenize(call).texts.size(), 1U);
  using Tokenized = std::variant<TokenizeAnswer, CallError>;
  const auto refused =
      wait_for<Tokenized>([&](auto on_done) { service_->tokenize(call, on_done); });
  EXPECT_EQ(std::get<CallError>(refused).error.message, "key ci has used its 1 request a minute");
}

// The device stops on the text, so that it has it when the client goes.
TEST_F(ServingTextsTest, AClientThatGoesIsChargedForWhatADeviceHas) {
  const auto ids = ids_of("q");
  ::setenv("ZERO_WORKER", ("echo dim=32 hang_on=" + std::to_string(ids[1])).c_str(), 1);
  start();
  service_->reconfigure(options_,
                        {{"ci", {.tokens_per_minute = 2.0 * static_cast<double>(ids.size()) - 1}}});
  const auto call_of = [](std::string text) {
    return EmbedCall{.options = {.caller = "ci"}, .texts = {std::move(text)}};
  };
  CallId id = 0;
  loop_.post([&] { id = service_->embed(call_of("q"), [](const Answer&) {}); });
  run_until([] { return has_stopped_child(); });
  service_->cancel(id);
  const auto refused = embed(call_of("r"));
  EXPECT_EQ(error(refused).kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(service_->status().limited_count, 1U);
}

TEST_F(ServingTextsTest, AClientThatGoesIsNotChargedForWhatNoDeviceHas) {
  start();
  service_->reconfigure(options_, {{"ci", {.tokens_per_minute = 4}}});
  const EmbedCall call{.options = {.caller = "ci"}, .texts = {"q"}};
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->cancel(service_->embed(call, [](const Answer&) {}));
    service_->embed(call, on_done);
  });
  EXPECT_EQ(vectors(answer).rows[0], echo_of("q").first);
}

// The device is drained before it is given the text.
TEST_F(ServingTextsTest, WhatWaitsIsRefusedWhenTheLastDeviceIsDrained) {
  options_.devices.resize(1);
  start();
  run_until([&] { return service_->is_ready(); });
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {"q"}}, on_done);
    service_->fleet_admin().drain(0);
  });
  EXPECT_EQ(error(answer).kind, ErrorKind::Unavailable);
  EXPECT_EQ(error(answer).message, "every device is drained");
  EXPECT_EQ(service_->models().front().state, ModelState::Drained);
}

// No text finds memory, the canary neither: the worker stays, and nobody waits for it.
TEST_F(ServingTextsTest, WhatWaitsIsRefusedWhileTheOnlyDeviceHasNoMemory) {
  options_.devices.resize(1);
  options_.admission.queue_budget = std::chrono::milliseconds(1);
  ::setenv("ZERO_WORKER", "echo dim=32 oom_above=1", 1);
  start();
  const auto answer = embed_texts({"q"});
  ASSERT_EQ(error(answer).kind, ErrorKind::Unavailable);
  EXPECT_EQ(error(answer).message,
            "no device of tiny works: cpu:0 is restarting: there is no memory for its canary: told "
            "to be full; it is asked again");
  EXPECT_TRUE(std::get<CallError>(answer).retry_after);
  EXPECT_EQ(error(embed_texts({"at once"})).message, error(answer).message);
  EXPECT_EQ(service_->models().front().state, ModelState::Failed);
  const auto device = service_->fleet().groups.front();
  EXPECT_EQ(device.restart_count, 0U);
  EXPECT_EQ(device.quarantine_count, 0U);
}

// Memory comes while the call waits: within the budget of the queue it is no failure.
TEST_F(ServingTextsTest, ACallIsHeldWhileTheOnlyDeviceWaitsForMemory) {
  options_.devices.resize(1);
  options_.admission.queue_budget = std::chrono::seconds(60);
  const auto memory = (folder_ / "memory").string();
  ::setenv("ZERO_WORKER", "echo dim=32", 1);
  ::setenv("ZERO_WORKER_MEMORY", memory.c_str(), 1);
  start();
  run_until([&] { return service_->models().front().state == ModelState::Failed; });
  EXPECT_TRUE(service_->fleet().groups.front().models.begin()->second.waits_for_memory);
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {"q"}}, on_done);
    std::ofstream(memory) << "there is some";
  });
  ::unsetenv("ZERO_WORKER_MEMORY");
  ASSERT_TRUE(std::holds_alternative<EmbedAnswer>(answer)) << error(answer).message;
  EXPECT_EQ(vectors(answer).rows[0], echo_of("q").first);
}

// The budget is a setting that changes while the server runs. Held for as long as it was, the call
// would end at its deadline.
TEST_F(ServingTextsTest, ACallThatIsHeldIsRefusedOnceTheBudgetIsShorter) {
  options_.devices.resize(1);
  options_.admission.queue_budget = std::chrono::hours(1);
  options_.deadline = std::chrono::seconds(10);
  ::setenv("ZERO_WORKER", "echo dim=32 full_at=0", 1);
  start();
  run_until([&] { return service_->models().front().state == ModelState::Failed; });
  const auto answer = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {"q"}}, on_done);
    options_.admission.queue_budget = std::chrono::milliseconds(1);
    service_->reconfigure(options_, {});
  });
  EXPECT_EQ(error(answer).kind, ErrorKind::Unavailable);
}

// Whoever drains the device, or ends the server, does not wait for the budget either.
TEST_F(ServingTextsTest, ACallThatIsHeldEndsWithADrainOfItsDeviceOrOfTheServer) {
  options_.devices.resize(1);
  options_.admission.queue_budget = std::chrono::hours(1);
  ::setenv("ZERO_WORKER", "echo dim=32 full_at=0", 1);
  start();
  run_until([&] { return service_->models().front().state == ModelState::Failed; });
  const auto drained = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {"q"}}, on_done);
    service_->fleet_admin().drain(0);
  });
  EXPECT_EQ(error(drained).message, "every device is drained");
  service_->fleet_admin().resume(0);
  run_until([&] { return service_->models().front().state == ModelState::Failed; });
  options_.drain_limit = std::chrono::milliseconds(1);
  service_->reconfigure(options_, {});
  const auto ended = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.texts = {"q"}}, on_done);
    service_->drain([] {});
  });
  EXPECT_EQ(error(ended).message, "the server ended before the answer");
}

// It would wait until its deadline: the one may come at any time, and the other never will.
TEST_F(ServingTextsTest, WhatWaitsIsRefusedWhereOneHasNoMemoryAndTheOtherCannotLoad) {
  options_.admission.queue_budget = std::chrono::milliseconds(1);
  ::setenv("ZERO_WORKER", "echo dim=32 full_at=0 fail_load", 1);
  start();
  const auto answer = embed_texts({"q"});
  ASSERT_EQ(error(answer).kind, ErrorKind::Unavailable);
  EXPECT_EQ(error(answer).message,
            "no device of tiny works: cpu:0 is restarting: a model cannot be loaded: told to be "
            "full; it is tried again");
  EXPECT_EQ(service_->models().front().state, ModelState::Failed);
}

// The canary has memory, this text has not, on either device: another time it may.
TEST_F(ServingTextsTest, ATextThatNoDeviceHasMemoryForMayComeAgain) {
  const auto id = ids_of("q").at(1);
  const auto canary = ids_of(precision_texts().front());
  ASSERT_EQ(std::find(canary.begin(), canary.end(), id), canary.end());
  ::setenv("ZERO_WORKER", fmt::format("echo dim=32 full_on={}", id).c_str(), 1);
  start();
  const auto answer = embed_texts({"q"});
  ASSERT_EQ(error(answer).kind, ErrorKind::Unavailable);
  EXPECT_EQ(error(answer).message, "no device has the memory for this text now: told to be full");
  EXPECT_EQ(vectors(embed_texts({"a"})).rows[0], echo_of("a").first);
}

// Every text has this id, the canary too: the worker is started again and again.
TEST_F(ServingTextsTest, WhatWaitsIsRefusedWhenNoDeviceIsRight) {
  options_.devices.resize(1);
  ::setenv("ZERO_WORKER", fmt::format("echo dim=32 fail_on={}", ids_of("q").front()).c_str(), 1);
  start();
  const auto answer = embed_texts({"q"});
  ASSERT_EQ(error(answer).kind, ErrorKind::Unavailable);
  EXPECT_EQ(error(answer).message,
            "no device of tiny works: cpu:0 is quarantined: it failed at its canary: told to fail");
  EXPECT_TRUE(std::get<CallError>(answer).retry_after);
  EXPECT_EQ(error(embed_texts({"at once"})).message, error(answer).message);
  EXPECT_EQ(service_->models().front().state, ModelState::Failed);

  using Loaded = Result<ServedModelStatus>;
  const auto second = wait_for<Loaded>(
      [&](auto on_done) { service_->load_model({.name = "second", .model = tiny()}, on_done); });
  ASSERT_FALSE(second);
  EXPECT_TRUE(
      second.error().message.starts_with("no device of second works: cpu:0 is quarantined"));

  ::setenv("ZERO_WORKER", "echo dim=32", 1);
  service_->fleet_admin().restart(0);
  run_until([&] { return service_->is_ready(); });
  EXPECT_EQ(vectors(embed_texts({"q"})).rows[0], echo_of("q").first);
}

// "alias" has cpu:0 alone, and the same keys there as the first model. When cpu:1, which could not
// start before, comes with another engine, what it computes is not found by who has the first
// engine alone.
TEST_F(ServingTextsTest, RowsOfAnotherEngineAreNotCachedAsThoseOfTheFirst) {
  options_.models.push_back({.name = "alias", .model = tiny(), .devices = {"cpu:0"}});
  ::setenv("ZERO_WORKER", "echo dim=32 exit_on=1", 1);
  start();
  const auto is_ready = [&](std::size_t device, const std::string& engine) {
    const auto status = service_->fleet().groups[device];
    return status.state == GroupState::Ready && status.engine_class == engine &&
           status.models.at(1).state == ModelState::Ready;
  };
  run_until([&] { return is_ready(0, "zero"); });
  const auto one_class = service_->models().front().equality_class;
  EXPECT_TRUE(one_class.ends_with(" zero")) << one_class;
  const EmbedCall by_alias{.options = {.model = "alias"}, .texts = {"of the first"}};
  EXPECT_EQ(vectors(embed_texts({"of the first"})).cached_count, 0U);
  EXPECT_EQ(vectors(embed(by_alias)).cached_count, 1U);

  ::setenv("ZERO_WORKER", "echo dim=32 other_on=1", 1);
  service_->fleet_admin().restart(1);
  run_until([&] { return is_ready(1, "other"); });
  EXPECT_EQ(service_->models().front().equality_class, one_class + " + other");
  service_->fleet_admin().drain(0);
  run_until([&] { return service_->fleet().groups[0].state == GroupState::Drained; });
  EXPECT_EQ(vectors(embed_texts({"of the other"})).cached_count, 0U);
  EXPECT_EQ(vectors(embed_texts({"of the other"})).cached_count, 1U);
  service_->fleet_admin().resume(0);
  run_until([&] { return is_ready(0, "zero"); });
  const EmbedCall other{.options = {.model = "alias"}, .texts = {"of the other"}};
  EXPECT_EQ(vectors(embed(other)).cached_count, 0U);
}

// They may be on other devices. The third value of a row is the number of the model that was asked.
TEST_F(ServingTextsTest, TwoModelsOfTheSameFilesDoNotShareATextInFlight) {
  options_.models.push_back({.name = "alias", .model = tiny()});
  start();
  std::optional<Answer> by_tiny;
  const auto by_alias = wait_for<Answer>([&](auto on_done) {
    service_->embed(EmbedCall{.options = {.model = "tiny"}, .texts = {"the same"}},
                    [&by_tiny](const Answer& given) { by_tiny = given; });
    service_->embed(EmbedCall{.options = {.model = "alias"}, .texts = {"the same"}}, on_done);
  });
  run_until([&] { return by_tiny.has_value(); });
  ASSERT_TRUE(by_tiny);
  EXPECT_EQ(service_->status().shared_count, 0U);
  EXPECT_EQ(vectors(*by_tiny).rows[2], 1.0F);
  EXPECT_EQ(vectors(by_alias).rows[2], 2.0F);
}

TEST_F(ServingTextsTest, AModelThatLeavesTakesNoTextOfAnotherOfItsFilesWithIt) {
  options_.models.push_back({.name = "alias", .model = tiny()});
  start();
  run_until([&] {
    const auto models = service_->models();
    return models[0].state == ModelState::Ready && models[1].state == ModelState::Ready;
  });
  const auto answer = wait_for<Answer>([&](auto on_done) {
    const auto by_tiny = service_->embed(
        EmbedCall{.options = {.model = "tiny"}, .texts = {"the same"}}, [](const Answer&) {});
    service_->embed(EmbedCall{.options = {.model = "alias"}, .texts = {"the same"}}, on_done);
    service_->cancel(by_tiny);
    EXPECT_TRUE(service_->unload_model("tiny"));
  });
  EXPECT_EQ(vectors(answer).rows[0], echo_of("the same").first);
}

std::vector<std::string> numbered(const std::string& word, int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(fmt::format("{} {}", word, i));
  return texts;
}

// One device, and few texts in a batch. They wait until the device has loaded the model, so that it
// has none of them when the query comes.
TEST_F(ServingTextsTest, AQueryLiftsTheTextThatItSharesOutOfTheBulkLane) {
  options_.devices.resize(1);
  options_.batch_tokens = 16;
  start();
  const auto texts = numbered("text", 50);
  bool is_bulk_answered = false;
  std::optional<std::uint64_t> rows_at_answer;  // of all texts, when the query is answered
  const std::function<void()> ask_when_all_wait = [&] {
    if (service_->fleet().pending_count + service_->status().text_count < texts.size()) {
      return loop_.post(ask_when_all_wait);
    }
    service_->embed(EmbedCall{.options = {.lane = Lane::Interactive}, .texts = {texts.back()}},
                    [&](const Answer&) { rows_at_answer = service_->status().text_count; });
  };
  loop_.post([&] {
    service_->embed(EmbedCall{.options = {.lane = Lane::Bulk}, .texts = texts},
                    [&](const Answer&) { is_bulk_answered = true; });
    ask_when_all_wait();
  });
  run_until([&] { return is_bulk_answered && rows_at_answer; });
  EXPECT_EQ(service_->status().shared_count, 1U);
  ASSERT_TRUE(rows_at_answer);
  EXPECT_LT(*rows_at_answer, texts.size() / 2);
}

// Both wait in the bulk lane of one device.
TEST_F(ServingTextsTest, ACallerWithManyTextsDoesNotKeepAnotherWaiting) {
  options_.devices.resize(1);
  options_.batch_tokens = 16;
  start();
  const CallOptions by_a{.caller = "a", .lane = Lane::Bulk};
  const CallOptions by_b{.caller = "b", .lane = Lane::Bulk};
  bool is_a_answered = false;
  std::optional<std::uint64_t> rows_at_answer;  // of all texts, when b is answered
  loop_.post([&] {
    service_->embed(EmbedCall{.options = by_a, .texts = numbered("many", 200)},
                    [&](const Answer&) { is_a_answered = true; });
    service_->embed(EmbedCall{.options = by_b, .texts = {"one"}}, [&](const Answer& given) {
      EXPECT_TRUE(std::holds_alternative<EmbedAnswer>(given));
      rows_at_answer = service_->status().text_count;
    });
  });
  run_until([&] { return is_a_answered && rows_at_answer; });
  ASSERT_TRUE(rows_at_answer);
  EXPECT_LT(*rows_at_answer, 100U);
}

// 200 texts are more than the longest text and more than what is done in the time of a batch, as
// far as a speed is known: no device has loaded the model yet.
TEST_F(ServingTextsTest, MuchThatIsAskedForAsInteractiveWaitsInTheBulkLane) {
  start();
  loop_.post([&] {
    service_->embed(EmbedCall{.options = {.caller = "a", .lane = Lane::Interactive},
                              .texts = numbered("many", 200)},
                    [](const Answer&) {});
    const auto queues = service_->fleet().queues;
    EXPECT_EQ(queues.at(static_cast<std::size_t>(Lane::Interactive)).token_count, 0U);
    EXPECT_GT(queues.at(static_cast<std::size_t>(Lane::Bulk)).token_count, 0U);
    loop_.stop();
  });
  loop_.run();
}

}  // namespace
}  // namespace muster
