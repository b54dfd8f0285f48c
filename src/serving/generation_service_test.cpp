// Calls for replies, on real worker processes that count (stand_ins/counting_worker).
#include "serving/generation_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "serving/decoder_fixture.h"

namespace muster {
namespace {

class GenerationServiceTest : public testing::Test {
 protected:
  struct Outcome {
    std::string text;
    GenerationUsage usage;
    std::optional<FinishReason> end;
    std::optional<CallError> error;
    bool is_over() const { return end || error; }
  };

  GenerationServiceTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("generation." + std::to_string(::getpid()))) {
    write_counting_decoder(folder_ / "counting");
    options_.decoders = {{.name = "chat", .model = (folder_ / "counting").string()}};
    options_.devices.resize(1);
    options_.worker_program = std::filesystem::path(MUSTER_BINARY_DIR) / "bin/counting_worker";
  }
  ~GenerationServiceTest() override {
    service_.reset();
    ::unsetenv("COUNTING_WORKER");
    std::filesystem::remove_all(folder_);
  }

  void start(const std::string& orders = "") {
    ::setenv("COUNTING_WORKER", orders.c_str(), 1);
    auto service = GenerationService::start(
        options_, loop_,
        {.on_notice = [](const std::string&, const std::optional<std::string>&) {},
         .on_fatal = [](const Error& error) { FAIL() << error.message; }},
        clock_);
    ASSERT_TRUE(service) << service.error().message;
    service_ = *std::move(service);
  }

  CallId ask(GenerationCall call, Outcome& outcome) {
    GenerationSink events;
    events.on_text = [&](std::string_view text, const GenerationUsage& usage) {
      outcome.text += text;
      outcome.usage = usage;
    };
    events.on_end = [&](FinishReason reason, const GenerationUsage& usage) {
      outcome.end = reason;
      outcome.usage = usage;
    };
    events.on_failed = [&](const CallError& error) { outcome.error = error; };
    return service_->generate(std::move(call), std::move(events));
  }

  void run_until(const std::function<bool()>& is_so) {
    std::function<void()> look = [&] {
      if (is_so()) return loop_.stop();
      loop_.post(look);
    };
    loop_.post(look);
    loop_.run();
  }

  Outcome answer(GenerationCall call) {
    Outcome outcome;
    ask(std::move(call), outcome);
    run_until([&] { return outcome.is_over(); });
    return outcome;
  }

  static std::string message(const Outcome& outcome) {
    return outcome.error ? outcome.error->error.message : "no error";
  }

  const std::filesystem::path folder_;
  const SteadyClock clock_;
  EventLoop loop_;
  ServeOptions options_;
  std::unique_ptr<GenerationService> service_;
};

TEST_F(GenerationServiceTest, AnswersAConversationUpToTheTokenThatEndsIt) {
  start();
  const auto reply =
      answer({.turns = {{.role = "system", .content = "ab"}, {.role = "user", .content = "x"}}});
  EXPECT_EQ(reply.text, "yzé012345678");
  EXPECT_EQ(reply.end, FinishReason::Stop);
  EXPECT_EQ(reply.usage.prompt_tokens, 3U);
  EXPECT_EQ(reply.usage.reply_tokens, 13U) << "é is two, and the last token is not sent";
  const auto status = service_->status();
  EXPECT_EQ(status.request_count, 1U);
  EXPECT_EQ(status.stop_count, 1U);
  EXPECT_EQ(status.prompt_token_count, 3U);
  EXPECT_EQ(status.reply_token_count, 13U);
  std::uint64_t gaps = 0;
  for (const auto count : status.token_gap.counts) gaps += count;
  EXPECT_EQ(gaps, 12U);
  EXPECT_EQ(status.running_count + status.waiting_count, 0U);
}

// The limit falls between the two bytes of a character: what is no whole character is shown as
// Unicode's replacement.
TEST_F(GenerationServiceTest, ContinuesATextAndIdsUpToTheLimit) {
  start();
  const auto text = answer({.text = "x", .token_limit = 4});
  EXPECT_EQ(text.text, "yzé");
  EXPECT_EQ(text.end, FinishReason::Length);
  const auto ids = answer({.ids = {1, 2}, .token_limit = 3});
  EXPECT_EQ(ids.text, "cde");
  const auto cut = answer({.text = "x", .token_limit = 3});
  EXPECT_EQ(cut.text, "yz\xEF\xBF\xBD");
}

TEST_F(GenerationServiceTest, AStopStringEndsTheReplyAndFreesTheWorker) {
  start();
  const auto reply = answer({.text = "x", .stops = {"12", "none"}});
  EXPECT_EQ(reply.text, "yzé0");
  EXPECT_EQ(reply.end, FinishReason::Stop);
  EXPECT_EQ(reply.usage.reply_tokens, 7U);
  EXPECT_EQ(service_->status().running_count, 0U);
  const auto on = answer({.text = "x", .token_limit = 15, .ignores_stop_ids = true});
  EXPECT_EQ(on.text, "yzé0123456789 ");
  EXPECT_EQ(on.end, FinishReason::Length);
}

TEST_F(GenerationServiceTest, AReplySurvivesItsWorkers) {
  start("die_after=3");
  const auto reply = answer({.text = "a"});
  EXPECT_EQ(reply.text, "bcdefghijklmnopqrstuvwxyzé012345678");
  EXPECT_EQ(reply.end, FinishReason::Stop);
  EXPECT_GT(service_->models()[0].devices[0].restart_count, 5U);
}

// 40 ids: two blocks of 16, and the last id is computed in any case.
TEST_F(GenerationServiceTest, APromptIsNotComputedAgainForTheSameCaller) {
  start();
  const auto cached = [&](const std::string& caller) {
    const auto reply = answer({.caller = caller, .text = std::string(40, 'a'), .token_limit = 1});
    EXPECT_EQ(reply.text, "b");
    return reply.usage.cached_tokens;
  };
  EXPECT_EQ(cached("ci"), 0U);
  EXPECT_EQ(cached("ci"), 32U);
  EXPECT_EQ(cached("other"), 0U) << "it would learn what ci has asked";
  EXPECT_EQ(cached(""), 0U);
  EXPECT_EQ(service_->status().prefix_query_token_count, 160U);
  EXPECT_EQ(service_->status().prefix_hit_token_count, 32U);
}

TEST_F(GenerationServiceTest, CallersShareBeginningsWhereTheyAreToldTo) {
  options_.is_cache_shared = true;
  start();
  for (const auto* caller : {"ci", "other"}) {
    const auto reply = answer({.caller = caller, .text = std::string(40, 'a'), .token_limit = 1});
    EXPECT_EQ(reply.usage.cached_tokens, std::string(caller) == "ci" ? 0U : 32U);
  }
}

TEST_F(GenerationServiceTest, OfAReplyThatGoesOnElsewhereItsOwnBeginningIsTold) {
  start("kill_after=20");
  const auto reply = answer({.text = std::string(40, 'a'), .token_limit = 25});
  EXPECT_EQ(reply.usage.reply_tokens, 25U);
  EXPECT_EQ(reply.usage.cached_tokens, 0U);
  // Looked up again with 20 tokens of the reply.
  EXPECT_EQ(service_->status().prefix_query_token_count, 100U);
}

TEST_F(GenerationServiceTest, ACancelledCallIsToldNothingMore) {
  start("wait_at=2");
  Outcome outcome;
  const auto id = ask({.text = "a"}, outcome);
  run_until([&] { return outcome.text == "bc"; });
  EXPECT_EQ(service_->status().running_count, 1U);
  service_->cancel(id);
  service_->cancel(id);
  EXPECT_EQ(service_->status().running_count, 0U);
  EXPECT_EQ(service_->status().cancelled_count, 1U);
  EXPECT_FALSE(outcome.is_over());
}

TEST_F(GenerationServiceTest, WhatCannotBeDoneIsRefused) {
  start("length_max=20");
  EXPECT_EQ(message(answer({.model = "chad", .text = "a"})),
            "no model that generates has this name: chad; did you mean chat?");
  ASSERT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");  // the worker is ready now
  const auto longest = answer({.text = std::string(20, 'a')});
  EXPECT_EQ(message(longest),
            "the context is 20 tokens, prompt and reply together, and the prompt has 20");
  EXPECT_EQ(longest.error->field, CallField::PromptLength);
  EXPECT_EQ(answer({.text = std::string(19, 'a')}).text, "b") << "there is room for one token";
  EXPECT_EQ(message(answer({.text = std::string(1000, 'a')})),
            "the context is 20 tokens, prompt and reply together, and the prompt has 128 or more")
      << "no more is read than the longest context";
  const auto refused = answer({.turns = {{.role = "user", .content = "no"}}});
  EXPECT_NE(message(refused).find("not this"), std::string::npos) << message(refused);
  EXPECT_EQ(refused.error->field, CallField::Prompt);
  EXPECT_EQ(message(answer({.ids = {41}})), "a token id is not in the vocabulary of 41: 41");
  EXPECT_EQ(message(answer({.text = ""})), "the prompt is empty: there is nothing to continue");
}

TEST_F(GenerationServiceTest, WhenTooManyWaitOthersAreToldToComeAgain) {
  start("wait_at=1");
  // 32 are with the worker, 64 wait.
  std::vector<Outcome> outcomes(97);
  for (std::size_t i = 0; i < 32; ++i) ask({.text = "a"}, outcomes[i]);
  run_until([&] { return service_->status().running_count == 32; });
  for (std::size_t i = 32; i < 97; ++i) ask({.text = "a"}, outcomes[i]);
  EXPECT_EQ(service_->status().waiting_count, 64U);
  EXPECT_FALSE(outcomes[95].error);
  const auto& refused = outcomes.back();
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->error.kind, ErrorKind::ResourceExhausted);
  EXPECT_GE(refused.error->retry_after.value_or(Duration{0}), std::chrono::seconds(1));
  EXPECT_EQ(service_->status().refused_count, 1U);
}

TEST_F(GenerationServiceTest, ACallersOwnLimitsHold) {
  start();
  service_->set_limits({{"ci", {.requests_per_minute = 1}}});
  EXPECT_EQ(answer({.caller = "ci", .text = "a", .token_limit = 1}).text, "b");
  const auto second = answer({.caller = "ci", .text = "a", .token_limit = 1});
  ASSERT_TRUE(second.error);
  EXPECT_TRUE(second.error->retry_after);
  EXPECT_EQ(answer({.caller = "other", .text = "a", .token_limit = 1}).text, "b");
  EXPECT_EQ(service_->status().limited_count, 1U);
}

// A caller of one token a minute: whatever is charged, nothing is left of it for minutes.
TEST_F(GenerationServiceTest, WhatADeviceHasComputedIsCharged) {
  start("length_max=20");
  service_->set_limits({{"ci", {.tokens_per_minute = 1}}});
  const auto left = [&] { return service_->usage_of("ci")->tokens->remaining; };
  ASSERT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");  // the worker is ready now
  EXPECT_TRUE(answer({.caller = "ci", .text = std::string(20, 'a')}).error);
  EXPECT_EQ(left(), 1) << "it was too long, and nothing was computed";
  Outcome outcome;
  service_->cancel(ask({.caller = "ci", .text = "a"}, outcome));
  EXPECT_EQ(left(), 1) << "it was with no device";
  EXPECT_EQ(answer({.caller = "ci", .text = "a", .token_limit = 2}).text, "bc");
  EXPECT_EQ(left(), 0);
  EXPECT_FALSE(service_->usage_of("other"));
}

TEST_F(GenerationServiceTest, WhatWorkersDiedOfIsCharged) {
  start("poison=1");  // "a"
  service_->set_limits({{"ci", {.tokens_per_minute = 1}}});
  EXPECT_TRUE(answer({.caller = "ci", .text = "a"}).error);
  EXPECT_LT(service_->usage_of("ci")->tokens->remaining, 0.5) << "of one";
}

TEST_F(GenerationServiceTest, AModelWhoseWorkersDieAtEachLoadIsNotWaitedFor) {
  start("die_at_load");
  const auto outcome = answer({.text = "a"});
  EXPECT_EQ(message(outcome), "no device can load chat");
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->error.kind, ErrorKind::Unavailable);
  EXPECT_TRUE(outcome.error->retry_after);
}

TEST_F(GenerationServiceTest, WhatWasComputedForOneThatWentIsCharged) {
  start("wait_at=1");
  service_->set_limits({{"ci", {.tokens_per_minute = 1}}});
  Outcome outcome;
  const auto id = ask({.caller = "ci", .text = "a"}, outcome);
  run_until([&] { return outcome.text == "b"; });
  service_->cancel(id);
  EXPECT_EQ(service_->usage_of("ci")->tokens->remaining, 0);
}

TEST_F(GenerationServiceTest, ACallMayBeCancelledFromWithinItsText) {
  start();
  CallId id = 0;
  int text_count = 0;
  GenerationSink events;
  events.on_text = [&](std::string_view, const GenerationUsage&) {
    service_->cancel(id);
    ++text_count;
  };
  events.on_end = [](FinishReason, const GenerationUsage&) { ADD_FAILURE(); };
  events.on_failed = [](const CallError& error) { ADD_FAILURE() << error.error.message; };
  id = service_->generate({.text = "a"}, std::move(events));
  run_until([&] { return service_->status().cancelled_count == 1; });
  EXPECT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");
  EXPECT_EQ(text_count, 1);
}

TEST_F(GenerationServiceTest, AModelThatCannotBeLoadedIsNoFaultOfACall) {
  start("fail_load");
  for (int i = 0; i < 2; ++i) {  // one that waits for it, and one that comes later
    const auto outcome = answer({.text = "a"});
    EXPECT_EQ(message(outcome), "no device can load chat");
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->error.kind, ErrorKind::Unavailable);
  }
  EXPECT_EQ(service_->models()[0].state, ModelState::Failed);
  EXPECT_EQ(service_->models()[0].devices[0].state, ModelState::Failed);
}

TEST_F(GenerationServiceTest, SettingsThatDecodersDoNotHaveAreRefused) {
  const auto refusal = [&](const ServedModel& model) {
    options_.decoders = {model};
    const auto service = GenerationService::start(options_, loop_, {}, clock_);
    return service ? std::string() : service.error().message;
  };
  const auto model = (folder_ / "counting").string();
  EXPECT_EQ(refusal({.model = model, .normalize = true}),
            "counting: a model that generates has no normalize");
  EXPECT_EQ(refusal({.model = model, .precision = Precision::Fp16}),
            "counting: decoders are computed in fp32, bf16 or the file's own bits (auto), not in "
            "fp16");
  options_.devices[0].kind = DeviceKind::Cuda;
  EXPECT_EQ(refusal({.model = model}),
            "counting: decoders are computed on CPUs only, and its devices have none: use "
            "--devices cpu");
}

}  // namespace
}  // namespace muster
