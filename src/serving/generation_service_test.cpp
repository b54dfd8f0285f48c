// Calls for replies, on real worker processes that count (stand_ins/counting_worker).
#include "serving/generation_fixture.h"

namespace muster {
namespace {

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
            "the context is 20 tokens, prompt and reply together, and the prompt has 129 or more")
      << "no more is read than the longest context and one token";
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
  set_limits({{"ci", {.requests_per_minute = 1}}});
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
  set_limits({{"ci", {.tokens_per_minute = 1}}});
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
  set_limits({{"ci", {.tokens_per_minute = 1}}});
  EXPECT_TRUE(answer({.caller = "ci", .text = "a"}).error);
  EXPECT_LT(service_->usage_of("ci")->tokens->remaining, 0.5) << "of one";
}

TEST_F(GenerationServiceTest, AModelWhoseWorkersDieAtEachLoadIsNotWaitedFor) {
  start("die_at_load");
  const auto outcome = answer({.text = "a"});
  EXPECT_EQ(message(outcome), "no device can load chat: its worker ended with signal 6 (Aborted)");
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->error.kind, ErrorKind::Unavailable);
  EXPECT_TRUE(outcome.error->retry_after);
}

TEST_F(GenerationServiceTest, WhatWasComputedForOneThatWentIsCharged) {
  start("wait_at=1");
  set_limits({{"ci", {.tokens_per_minute = 1}}});
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
  events.on_part = [&](const ReplyPart&, const GenerationUsage&) {
    service_->cancel(id);
    ++text_count;
  };
  events.on_choice_end = [](std::uint32_t, FinishReason) { ADD_FAILURE(); };
  events.on_end = [](const GenerationEnd&) { ADD_FAILURE(); };
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
  EXPECT_EQ(service_->models()[0].devices[0].state, GroupState::GivenUp);
}

// Where it goes on, a client is told to come again: the model is on its way.
TEST_F(GenerationServiceTest, AModelThatIsBeingLoadedIsToldSo) {
  start_loading();
  Outcome outcome;
  ask({.model = "chat", .text = "a"}, outcome);
  EXPECT_EQ(message(outcome), "chat is being loaded");
  EXPECT_EQ(outcome.error->error.kind, ErrorKind::Unavailable);
  EXPECT_EQ(outcome.error->retry_after, std::chrono::seconds(1));
}

// ---- Several replies to one call: choice 1 begins one token further on than choice 0 ----

TEST_F(GenerationServiceTest, ChoicesAreStreamsOfTheirOwn) {
  start();
  const auto reply = answer({.text = "a", .token_limit = 3, .choice_count = 3});
  EXPECT_EQ(reply.texts,
            (std::map<std::uint32_t, std::string>{{0, "bcd"}, {1, "cde"}, {2, "def"}}));
  EXPECT_EQ(reply.ended.size(), 3U);
  EXPECT_EQ(reply.wanted, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(reply.usage.prompt_tokens, 1U) << "once";
  EXPECT_EQ(reply.usage.reply_tokens, 9U);
  const auto status = service_->status();
  EXPECT_EQ(status.request_count, 1U);
  EXPECT_EQ(status.length_count, 3U) << "of replies";
  EXPECT_EQ(status.prompt_token_count, 1U);
  EXPECT_EQ(status.reply_token_count, 9U);
  EXPECT_EQ(status.running_count + status.waiting_count, 0U);
}

// 40 ids: two blocks of 16. The first computes them, so that of the call's prompt nothing was
// cached, though the others find them; each of them looked.
TEST_F(GenerationServiceTest, WhatOneChoiceComputesOfAPromptIsSharedAndNotCalledCached) {
  start();
  const GenerationCall call{.text = std::string(40, 'a'), .token_limit = 2, .choice_count = 3};
  EXPECT_EQ(answer(call).usage.cached_tokens, 0U);
  EXPECT_EQ(service_->status().prefix_query_token_count, 120U);
  EXPECT_EQ(service_->status().prefix_hit_token_count, 64U);
  EXPECT_EQ(answer(call).usage.cached_tokens, 32U);
  EXPECT_EQ(service_->status().prefix_query_token_count, 240U);
  EXPECT_EQ(service_->status().prefix_hit_token_count, 160U);
}

// One ends by a stop string behind a text, one by it at once, one by the token that ends a reply.
TEST_F(GenerationServiceTest, EachChoiceHasItsOwnEnd) {
  start();
  const auto reply = answer({.text = "4", .token_limit = 4, .stops = {"6"}, .choice_count = 3});
  EXPECT_EQ(reply.texts, (std::map<std::uint32_t, std::string>{{0, "5"}, {1, ""}, {2, "78"}}));
  EXPECT_EQ(service_->status().stop_count, 3U);
  // Choice 3 begins with "8" and choice 4 is at its end with its first token.
  const auto short_ones = answer({.text = "4", .token_limit = 1, .choice_count = 5});
  EXPECT_EQ(short_ones.texts.at(3), "8");
  EXPECT_EQ(short_ones.texts.count(4), 0U);
  EXPECT_EQ(short_ones.ended.size(), 5U);
  EXPECT_EQ(short_ones.usage.reply_tokens, 4U);
}

TEST_F(GenerationServiceTest, ChoicesSurviveTheirWorkers) {
  options_.devices.resize(2);
  options_.devices[1].index = 1;
  start("die_after=3");
  const auto reply = answer({.text = "a", .token_limit = 8, .choice_count = 3});
  EXPECT_EQ(reply.texts, (std::map<std::uint32_t, std::string>{
                             {0, "bcdefghi"}, {1, "cdefghij"}, {2, "defghijk"}}));
  EXPECT_EQ(reply.usage.reply_tokens, 24U) << "none twice";
}

TEST_F(GenerationServiceTest, AChoiceThatFailsFailsTheCallAndEndsTheOthers) {
  start("wait_at=2 fail_choice=2");
  const auto reply = answer({.text = "a", .choice_count = 4});
  EXPECT_EQ(message(reply), "told to fail this choice");
  EXPECT_FALSE(reply.is_done);
  const auto status = service_->status();
  EXPECT_EQ(status.failed_count, 4U);
  EXPECT_EQ(status.running_count + status.waiting_count, 0U);
  EXPECT_EQ(service_->models()[0].devices[0].running_count, 0U);
}

TEST_F(GenerationServiceTest, AClientThatGoesEndsAllItsChoices) {
  start("wait_at=1");
  Outcome outcome;
  const auto id = ask({.text = "a", .choice_count = 3}, outcome);
  run_until([&] { return outcome.texts.size() == 3; });
  EXPECT_EQ(service_->status().running_count, 3U);
  service_->cancel(id);
  EXPECT_EQ(service_->status().running_count, 0U);
  EXPECT_EQ(service_->status().cancelled_count, 3U);
  EXPECT_FALSE(outcome.is_over());
}

TEST_F(GenerationServiceTest, ACallMayBeCancelledFromWithinTheEndOfAChoice) {
  start();
  CallId id = 0;
  int end_count = 0;
  GenerationSink events;
  events.on_part = [](const ReplyPart&, const GenerationUsage&) {};
  events.on_choice_end = [&](std::uint32_t, FinishReason) {
    service_->cancel(id);
    ++end_count;
  };
  events.on_end = [](const GenerationEnd&) { ADD_FAILURE(); };
  events.on_failed = [](const CallError& error) { ADD_FAILURE() << error.error.message; };
  id = service_->generate({.text = "a", .token_limit = 1, .choice_count = 3}, std::move(events));
  run_until([&] { return service_->status().cancelled_count == 2; });
  EXPECT_EQ(answer({.text = "a", .token_limit = 1}).text, "b");
  EXPECT_EQ(end_count, 1);
}

// 32 are with the worker, and then 63 wait: one more may, and two may not.
TEST_F(GenerationServiceTest, EveryChoiceCountsAmongThoseThatWait) {
  start("wait_at=1");
  Outcome running;
  ask({.text = "a", .choice_count = 32}, running);
  run_until([&] { return service_->status().running_count == 32; });
  Outcome first;
  Outcome second;
  ask({.text = "a", .choice_count = 32}, first);
  ask({.text = "a", .choice_count = 31}, second);
  EXPECT_EQ(service_->status().waiting_count, 63U);
  Outcome two;
  ask({.text = "a", .choice_count = 2}, two);
  EXPECT_EQ(message(two), "63 requests wait for this model, and 2 more are too many");
  EXPECT_EQ(two.error->error.kind, ErrorKind::ResourceExhausted);
  EXPECT_TRUE(two.error->retry_after);
  Outcome one;
  ask({.text = "a"}, one);
  EXPECT_FALSE(one.error);
}

TEST_F(GenerationServiceTest, TheTokensOfAllChoicesAreCharged) {
  start();
  set_limits({{"ci", {.tokens_per_minute = 20}}});
  const auto reply = answer({.caller = "ci", .text = "a", .token_limit = 5, .choice_count = 4});
  EXPECT_EQ(reply.usage.reply_tokens, 20U);
  // 21 of 20, of which one comes back in three seconds; one reply alone would have left 14.
  EXPECT_LT(service_->usage_of("ci")->tokens->remaining, 14);
}

// The log-probability of token t is (t - 64) / 8, so the last candidate is the likeliest: from "a"
// on, of three tokens each, candidate i has the mean (i + 3 - 64) / 8.
TEST_F(GenerationServiceTest, TheBestOfTheCandidatesAreTaken) {
  start();
  const auto reply =
      answer({.text = "a", .token_limit = 3, .choice_count = 2, .candidate_count = 4});
  EXPECT_EQ(reply.wanted, (std::vector<std::uint32_t>{3, 2}));
  EXPECT_EQ(reply.texts.at(3), "efg");
  EXPECT_TRUE(reply.tokens.empty()) << "the client asked for none";
  EXPECT_EQ(reply.usage.reply_tokens, 12U) << "of all that were computed";
}

TEST_F(GenerationServiceTest, TheBestAreTakenByTheMeanAndAnEmptyReplyComesLast) {
  start();
  // "b", which stops at once: -62 / 8; "cd": -61 / 8 and -60 / 8, more in the sum and less each.
  const auto reply = answer({.text = "a", .token_limit = 2, .stops = {"b"}, .candidate_count = 2});
  EXPECT_EQ(reply.texts, (std::map<std::uint32_t, std::string>{{0, ""}, {1, "cd"}}));
  EXPECT_EQ(reply.wanted, std::vector<std::uint32_t>{1});
  // "78" (ids 36, 37), "8", nothing, and " ?" (ids 39, 40) behind the token that ends a reply.
  const auto all = answer({.text = "6", .token_limit = 2, .choice_count = 3, .candidate_count = 4});
  EXPECT_EQ(all.wanted, (std::vector<std::uint32_t>{3, 1, 0}));
}

TEST_F(GenerationServiceTest, LogprobsComeWithEachTokenWhereTheyAreAskedFor) {
  start();
  const auto reply = answer({.text = "x", .token_limit = 3, .sampling = {.logprob_count = 2}});
  ASSERT_EQ(reply.tokens.size(), 3U);
  EXPECT_EQ(reply.tokens[0].chosen.bytes, "y");
  EXPECT_EQ(reply.tokens[0].chosen.logprob, (25 - 64) / 8.0F);
  ASSERT_EQ(reply.tokens[0].top.size(), 2U);
  EXPECT_EQ(reply.tokens[0].top[1].bytes, "x");
  EXPECT_EQ(reply.tokens[0].top[1].logprob, (24 - 64) / 8.0F);
  EXPECT_EQ(reply.tokens[2].chosen.bytes, "\xC3") << "the first byte of é";
  EXPECT_TRUE(answer({.text = "x", .token_limit = 3}).tokens.empty());
  const auto chosen = answer({.text = "x", .token_limit = 3, .sampling = {.logprob_count = 0}});
  ASSERT_EQ(chosen.tokens.size(), 3U);
  EXPECT_TRUE(chosen.tokens[0].top.empty());
}

// Tokens of a stop string are computed and counted, and so are their log-probabilities told.
TEST_F(GenerationServiceTest, EveryTokenThatIsCountedHasItsLogprob) {
  start("die_after=2");
  const auto reply = answer({.text = "x", .stops = {"12"}, .sampling = {.logprob_count = 0}});
  EXPECT_EQ(reply.text, "yzé0");
  EXPECT_EQ(reply.usage.reply_tokens, 7U);
  ASSERT_EQ(reply.tokens.size(), 7U);
  EXPECT_EQ(reply.tokens.back().chosen.bytes, "2");
}

TEST_F(GenerationServiceTest, AWorkerThatTellsNoLogprobsFailsTheCall) {
  start("no_logprobs");
  EXPECT_EQ(message(answer({.text = "x", .sampling = {.logprob_count = 0}})),
            "the worker told no log-probabilities");
  EXPECT_EQ(message(answer({.text = "x", .candidate_count = 2})),
            "the worker told no log-probabilities");
  EXPECT_EQ(answer({.text = "x", .token_limit = 1}).text, "y");
}

TEST_F(GenerationServiceTest, AReplyMayBeginWithItsPrompt) {
  start();
  const auto text =
      answer({.text = "wx", .token_limit = 2, .echoes_prompt = true, .choice_count = 2});
  EXPECT_EQ(text.texts, (std::map<std::uint32_t, std::string>{{0, "wxyz"}, {1, "wxz\uFFFD"}}));
  EXPECT_EQ(answer({.ids = {23, 24}, .token_limit = 1, .echoes_prompt = true}).text, "wxy");
  EXPECT_EQ(answer({.text = "8", .echoes_prompt = true}).text, "8") << "and nothing follows";
}

// Its workers die behind every third token that they tell, of the prompt or of the reply.
TEST_F(GenerationServiceTest, AScoredPromptSurvivesItsWorkersWithoutATokenTwiceOrMissing) {
  start("die_after=3");
  const auto reply = answer({.text = "abcdef",
                             .token_limit = 2,
                             .echoes_prompt = true,
                             .sampling = {.logprob_count = 1}});
  EXPECT_EQ(reply.text, "abcdefgh");
  ASSERT_EQ(reply.tokens.size(), 8U) << message(reply);
  EXPECT_EQ(reply.tokens[0].chosen.bytes, "a");
  EXPECT_EQ(reply.tokens[0].chosen.logprob, std::nullopt) << "nothing is before it";
  EXPECT_TRUE(reply.tokens[0].top.empty());
  for (std::size_t i = 1; i < 8; ++i) {
    EXPECT_EQ(reply.tokens[i].chosen.bytes, std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(reply.tokens[i].chosen.logprob, (static_cast<float>(i) + 1 - 64) / 8.0F);
    EXPECT_EQ(reply.tokens[i].top.size(), 1U);
  }
  EXPECT_EQ(reply.usage.prompt_tokens, 6U);
  EXPECT_EQ(reply.usage.reply_tokens, 2U);
  EXPECT_EQ(service_->status().reply_token_count, 2U);
}

// Five ids are scored and three chosen: the worker would end with the ninth.
TEST_F(GenerationServiceTest, APromptIsScoredOnceForAllChoices) {
  start("die_after=9");
  const auto reply = answer({.text = "abcdef",
                             .token_limit = 1,
                             .echoes_prompt = true,
                             .sampling = {.logprob_count = 1},
                             .choice_count = 3});
  EXPECT_EQ(reply.texts,
            (std::map<std::uint32_t, std::string>{{0, "abcdefg"}, {1, "abcdefh"}, {2, "abcdefi"}}));
  EXPECT_EQ(reply.token_counts, (std::map<std::uint32_t, std::size_t>{{0, 7U}, {1, 7U}, {2, 7U}}));
  EXPECT_EQ(reply.usage.prompt_tokens, 6U);
  EXPECT_EQ(service_->models()[0].devices[0].restart_count, 0U);
}

// The best of three is wanted, and workers die amid the prompt and behind it.
TEST_F(GenerationServiceTest, CandidatesWithAScoredPromptSurviveTheirWorkers) {
  start("die_after=3");
  const auto reply = answer({.text = "abcdef",
                             .token_limit = 2,
                             .echoes_prompt = true,
                             .sampling = {.logprob_count = 0},
                             .candidate_count = 3});
  EXPECT_EQ(reply.wanted, std::vector<std::uint32_t>{2}) << message(reply);
  EXPECT_EQ(reply.texts.at(2), "abcdefij");
  EXPECT_EQ(reply.token_counts.at(2), 8U);
  EXPECT_EQ(reply.usage.reply_tokens, 6U) << "none twice";
}

// Id 0 is special: it stands in the echo of ids that have it, and adds nothing to a reply.
TEST_F(GenerationServiceTest, AnEchoShowsTheSpecialTokensOfItsPrompt) {
  start();
  const auto reply = answer({.ids = {23, 0, 24},
                             .token_limit = 1,
                             .echoes_prompt = true,
                             .sampling = {.logprob_count = 0}});
  EXPECT_EQ(reply.text, "w<end>xy");
  ASSERT_EQ(reply.tokens.size(), 4U) << message(reply);
  EXPECT_FALSE(reply.tokens[1].chosen.is_text);
  EXPECT_TRUE(reply.tokens[1].chosen.is_echoed);
  EXPECT_FALSE(reply.tokens[2].chosen.is_echoed) << "it is text";
}

// As lm-eval-harness asks: it takes the last token off, which is not one of its text.
TEST_F(GenerationServiceTest, AScoredPromptHasOneTokenBehindItThoughThatEndsTheReply) {
  start();
  const auto reply = answer(
      {.text = "8", .token_limit = 1, .echoes_prompt = true, .sampling = {.logprob_count = 0}});
  EXPECT_EQ(reply.tokens.size(), 2U) << message(reply);
  EXPECT_EQ(reply.end, FinishReason::Length);
}

TEST_F(GenerationServiceTest, AnEchoMayStandAlone) {
  start();
  const auto ended = [&](GenerationCall call) {
    call.token_limit = 0;
    call.echoes_prompt = true;
    auto reply = answer(std::move(call));
    EXPECT_EQ(reply.end, FinishReason::Length) << message(reply);
    EXPECT_EQ(reply.usage.reply_tokens, 0U);
    return reply;
  };
  EXPECT_EQ(ended({.text = "abc"}).text, "abc");
  const auto scored = ended({.text = "abc", .sampling = {.logprob_count = 0}, .choice_count = 2});
  EXPECT_EQ(scored.texts, (std::map<std::uint32_t, std::string>{{0, "abc"}, {1, "abc"}}));
  EXPECT_EQ(scored.tokens.size(), 3U);
  const auto single = ended({.ids = {5}, .sampling = {.logprob_count = 0}});
  EXPECT_EQ(single.text, "e");
  ASSERT_EQ(single.tokens.size(), 1U);
  EXPECT_EQ(single.tokens[0].chosen.logprob, std::nullopt);
}

GenerationCall echo_of(std::size_t size) {
  return {.text = std::string(size, 'a'), .token_limit = 0, .echoes_prompt = true};
}

TEST_F(GenerationServiceTest, AnEchoThatStandsAloneMayBeAsLongAsTheContext) {
  start("length_max=20");
  auto call = echo_of(20);
  call.sampling.logprob_count = 0;
  const auto whole = answer(std::move(call));
  EXPECT_EQ(whole.text, std::string(20, 'a')) << message(whole);
  EXPECT_EQ(whole.tokens.size(), 20U);
  EXPECT_EQ(message(answer(echo_of(21))),
            "the context is 20 tokens, prompt and reply together, and the prompt has 21");
}

TEST_F(GenerationServiceTest, AnEchoThatStandsAloneMayBeAsLongAsTheModel) {
  start("length_max=128");
  EXPECT_EQ(answer(echo_of(128)).text, std::string(128, 'a'));
  EXPECT_EQ(message(answer(echo_of(129))),
            "the context is 128 tokens, prompt and reply together, and the prompt has 129 or more");
}

TEST_F(GenerationServiceTest, AWorkerThatDoesNotScoreAPromptFailsTheCall) {
  start("no_scores");
  const GenerationCall call{
      .text = "abc", .token_limit = 1, .echoes_prompt = true, .sampling = {.logprob_count = 0}};
  const std::string why = "the worker told other tokens of a prompt than it was asked for";
  EXPECT_NE(message(answer(call)).find(why), std::string::npos);
  auto alone = call;
  alone.token_limit = 0;
  EXPECT_NE(message(answer(alone)).find(why), std::string::npos);
}

// From within any part of it.
TEST_F(GenerationServiceTest, AScoredPromptMayBeCancelledFromWithin) {
  start();
  for (const std::size_t part_count : {1U, 2U, 3U, 4U, 6U, 7U}) {
    std::size_t count = 0;
    CallId id = 0;
    GenerationSink events;
    events.on_part = [&](const ReplyPart&, const GenerationUsage&) {
      if (++count == part_count) service_->cancel(id);
    };
    events.on_choice_end = [](std::uint32_t, FinishReason) { FAIL(); };
    events.on_end = [](const GenerationEnd&) { FAIL(); };
    events.on_failed = [](const CallError& error) { FAIL() << error.error.message; };
    id = service_->generate({.text = "abc",
                             .token_limit = 2,
                             .echoes_prompt = true,
                             .sampling = {.logprob_count = 0},
                             .choice_count = 2},
                            std::move(events));
    run_until([&] { return count == part_count; });
    EXPECT_EQ(answer({.text = "x", .token_limit = 1}).text, "y");
    EXPECT_EQ(count, part_count);
  }
}

TEST_F(GenerationServiceTest, SettingsThatDecodersDoNotHaveAreRefused) {
  const auto refusal = [&](const ServedModel& model) {
    options_.decoders = {model};
    const auto service = GenerationService::start(options_, roster_, loop_, {}, clock_);
    return service ? std::string() : service.error().message;
  };
  const auto model = (folder_ / "counting").string();
  EXPECT_EQ(refusal({.model = model, .normalize = true}),
            "counting: a model that generates has no normalize");
  EXPECT_EQ(refusal({.model = model, .precision = Precision::Fp16}),
            "counting: decoders are computed in fp32, bf16, int8 or the file's own bits (own), "
            "not in fp16");
  options_.devices[0].kind = DeviceKind::Mps;
  EXPECT_EQ(refusal({.model = model}),
            "counting: decoders are computed on CPUs and NVIDIA GPUs, and its devices have none: "
            "use --devices cpu");
}

}  // namespace
}  // namespace muster
