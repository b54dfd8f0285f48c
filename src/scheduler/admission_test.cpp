#include "scheduler/admission.h"

#include <gtest/gtest.h>

#include <random>

namespace muster {
namespace {

using std::chrono::seconds;

constexpr TimePoint kStart{};

QueueState queue_of(std::uint64_t outstanding, std::optional<double> speed = 1000) {
  return {.queued_texts = outstanding / 10,
          .outstanding_tokens = outstanding,
          .tokens_ahead = outstanding,
          .tokens_per_second = speed,
          .eligible_device_count = 1};
}

AdmissionRequest request_of(std::uint64_t tokens, std::uint64_t texts = 1,
                            std::string caller = "") {
  return {.caller = std::move(caller), .text_count = texts, .token_estimate = tokens};
}

TEST(Admission, LetsInWhatIsPredictedWithinTheBudget) {
  Admission admission({.queue_budget = seconds(2)});
  EXPECT_FALSE(admission.ask(request_of(500), queue_of(1500), kStart));  // 2.0 s
  const auto refused = admission.ask(request_of(501), queue_of(1500), kStart);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->retry_after, seconds(1));  // 1 ms would do, but whole seconds are told
  EXPECT_EQ(refused->reason, "too busy: the queue would be 2.0 s long and may be 2.0 s");
  EXPECT_FALSE(refused->is_own_limit);
}

TEST(Admission, TellsToComeBackWhenTheQueueIsShortEnough) {
  Admission admission({.queue_budget = seconds(2)});
  // (9000 + 500 - 2000) tokens have to be done first, 1000 a second: 7.5 s, so 8.
  EXPECT_EQ(admission.ask(request_of(500), queue_of(9000), kStart)->retry_after, seconds(8));
  // It does not fit beside anything: all 9000 have to be done.
  EXPECT_EQ(admission.ask(request_of(5000), queue_of(9000), kStart)->retry_after, seconds(9));
}

TEST(Admission, ALongRequestIsLetInWhenNothingElseWaits) {
  Admission admission({.queue_budget = seconds(2)});
  EXPECT_FALSE(admission.ask(request_of(50'000), queue_of(0), kStart));
  EXPECT_TRUE(admission.ask(request_of(50'000), queue_of(1), kStart));
}

TEST(Admission, WhatWaitsBehindARequestDoesNotCountInItsWait) {
  Admission admission({.queue_budget = seconds(2), .queued_tokens_most = 10'000});
  auto queue = queue_of(9000);
  queue.tokens_ahead = 1500;
  EXPECT_FALSE(admission.ask(request_of(500), queue, kStart));  // 2.0 s
  const auto refused = admission.ask(request_of(900), queue, kStart);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "too busy: the queue would be 2.4 s long and may be 2.0 s");
  EXPECT_EQ(refused->retry_after, seconds(1));  // 400 tokens have to be done first
  queue.tokens_ahead = 0;
  EXPECT_FALSE(admission.ask(request_of(900), queue, kStart));
  EXPECT_TRUE(admission.ask(request_of(1001), queue, kStart));  // it has to be kept all the same
}

// 500 tokens a second stand for a speed that nobody knows, so 1,000 within 2 s.
TEST(Admission, WithoutAKnownSpeedLittleIsLetIn) {
  Admission admission({.queue_budget = seconds(2)});
  EXPECT_FALSE(admission.ask(request_of(50'000), queue_of(0, std::nullopt), kStart));
  EXPECT_FALSE(admission.ask(request_of(10), queue_of(990, std::nullopt), kStart));
  const auto refused = admission.ask(request_of(11), queue_of(990, std::nullopt), kStart);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->retry_after, seconds(1));
  EXPECT_EQ(
      refused->reason,
      "no speed is known yet: 990 tokens wait, 11 more were asked for and 1000 may wait until "
      "then");
}

TEST(Admission, TheHardBoundsHoldWhateverThePrediction) {
  Admission admission({.queued_tokens_most = 10'000, .queued_texts_most = 100});
  constexpr double kFast = 1e9;
  EXPECT_FALSE(admission.ask(request_of(9000), queue_of(990, kFast), kStart));
  const auto tokens = admission.ask(request_of(9011), queue_of(990, kFast), kStart);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->retry_after, seconds(1));
  EXPECT_EQ(tokens->reason, "990 tokens wait, 9011 more were asked for and 10000 may wait");
  const auto texts = admission.ask(request_of(2, 2), queue_of(990, kFast), kStart);
  ASSERT_TRUE(texts);
  EXPECT_EQ(texts->reason, "99 texts wait, 2 more were asked for and 100 may wait");
}

AdmissionRequest query_of(std::uint64_t tokens, std::string caller = "ci") {
  auto request = request_of(tokens, 1, std::move(caller));
  request.is_interactive = true;
  return request;
}

// What a lane holds in a batch's time are 100 tokens here: 60 and 40 are queries, what is more is
// bulk; the other key's are queries all the same.
TEST(Admission, AKeysQueriesAreInteractiveAsLongAsTheyAreLittleWork) {
  Admission admission({});
  EXPECT_EQ(admission.lane(request_of(1, 1, "ci"), 100), Lane::Bulk);  // asked for nothing else
  EXPECT_EQ(admission.lane(query_of(60, "ci"), 100), Lane::Interactive);
  EXPECT_FALSE(admission.ask(query_of(60, "ci"), queue_of(0), kStart));
  EXPECT_EQ(admission.lane(query_of(40, "ci"), 100), Lane::Interactive);
  EXPECT_EQ(admission.lane(query_of(41, "ci"), 100), Lane::Bulk);
  EXPECT_FALSE(admission.ask(query_of(41, "ci"), queue_of(0), kStart));  // counts all the same
  admission.on_end(query_of(60, "ci"), 60, kStart);
  EXPECT_EQ(admission.lane(query_of(10, "ci"), 100), Lane::Bulk) << "not before half is done";
  EXPECT_EQ(admission.lane(query_of(1, "other"), 100), Lane::Interactive);
  EXPECT_EQ(admission.lane(query_of(9, "ci"), 100), Lane::Interactive);
  EXPECT_EQ(admission.lane(query_of(10, "ci"), 100), Lane::Interactive) << "now it is";
  admission.on_end(query_of(41, "ci"), 41, kStart);
  EXPECT_EQ(admission.lane(query_of(100, "ci"), 100), Lane::Interactive);
  EXPECT_FALSE(admission.ask(query_of(500, "ci"), queue_of(0), kStart));  // in the bulk lane
  EXPECT_EQ(admission.lane(query_of(1, "ci"), 100), Lane::Bulk);
  EXPECT_EQ(admission.lane(query_of(1, "other"), 100), Lane::Interactive);
  admission.on_end(query_of(500, "ci"), 500, kStart);
  EXPECT_EQ(admission.lane(query_of(40, "ci"), 100), Lane::Interactive);
}

// One query at a time, each of more than half of what may be interactive.
TEST(Admission, WhoHasNothingUnderWayFloodsNoLonger) {
  Admission admission({});
  EXPECT_EQ(admission.lane(query_of(60), 100), Lane::Interactive);
  EXPECT_FALSE(admission.ask(query_of(60), queue_of(0), kStart));
  EXPECT_EQ(admission.lane(query_of(60), 100), Lane::Bulk);
  admission.on_end(query_of(60), 60, kStart);
  EXPECT_EQ(admission.lane(query_of(60), 100), Lane::Interactive);
}

// Of the second model ten times as many tokens are interactive.
TEST(Admission, AFloodOfOneModelIsNoneOfAFasterOne) {
  Admission admission({});
  EXPECT_EQ(admission.lane(query_of(600), 1000), Lane::Interactive);
  EXPECT_FALSE(admission.ask(query_of(600), queue_of(0), kStart));
  EXPECT_EQ(admission.lane(query_of(10), 100), Lane::Bulk);
  EXPECT_EQ(admission.lane(query_of(10), 1000), Lane::Interactive);
  EXPECT_EQ(admission.lane(query_of(401), 1000), Lane::Bulk);
  EXPECT_EQ(admission.lane(query_of(10), 900), Lane::Bulk) << "a speed that wavers";
}

TEST(Admission, AKeyMayUseAMinutesRequestsAtOnceAndThenTheRate) {
  Admission admission({});
  admission.set_limits({{"ci", {.requests_per_minute = 60}}});
  for (int i = 0; i < 60; ++i) {
    ASSERT_FALSE(admission.ask(request_of(1, 1, "ci"), queue_of(0), kStart)) << i;
  }
  const auto refused = admission.ask(request_of(1, 1, "ci"), queue_of(0), kStart);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->retry_after, seconds(1));
  EXPECT_EQ(refused->reason, "key ci has used its 60 requests a minute");
  EXPECT_TRUE(refused->is_own_limit);
  EXPECT_FALSE(admission.ask(request_of(1, 1, "other"), queue_of(0), kStart));
  EXPECT_FALSE(admission.ask(request_of(1, 1, "ci"), queue_of(0), kStart + seconds(1)));
  // 100 texts are four parts of 32: four seconds of this rate, one of which was used.
  EXPECT_EQ(admission.ask(request_of(1, 100, "ci"), queue_of(0), kStart + seconds(1))->retry_after,
            seconds(4));
  EXPECT_FALSE(admission.ask(request_of(1, 100, "ci"), queue_of(0), kStart + seconds(5)));
}

TEST(Admission, ALimitOfOneIsToldInTheSingular) {
  Admission admission({});
  admission.set_limits({{"ci", {.requests_per_minute = 1}}, {"one", {.requests_at_once = 1}}});
  for (const std::string key : {"ci", "one"}) {
    ASSERT_FALSE(admission.ask(request_of(1, 1, key), queue_of(0), kStart));
  }
  EXPECT_EQ(admission.ask(request_of(1, 1, "ci"), queue_of(0), kStart)->reason,
            "key ci has used its 1 request a minute");
  EXPECT_EQ(admission.ask(request_of(1, 1, "one"), queue_of(0), kStart)->reason,
            "key one: 1 request at once");
}

TEST(Admission, TokensOfAKeyArePutRightAtTheEnd) {
  Admission admission({});
  admission.set_limits({{"ci", {.tokens_per_minute = 600}}});
  EXPECT_FALSE(admission.ask(request_of(600, 1, "ci"), queue_of(0), kStart));
  const auto refused = admission.ask(request_of(100, 1, "ci"), queue_of(0), kStart);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->retry_after, seconds(10));  // 10 tokens a second
  EXPECT_EQ(refused->reason, "key ci has used its 600 tokens a minute");
  admission.on_end(request_of(600, 1, "ci"), 300, kStart);  // it had half of its estimate
  EXPECT_TRUE(admission.ask(request_of(301, 1, "ci"), queue_of(0), kStart));
  EXPECT_FALSE(admission.ask(request_of(300, 1, "ci"), queue_of(0), kStart));
  admission.on_end(request_of(300, 1, "ci"), 0, kStart);  // nothing was computed
  EXPECT_FALSE(admission.ask(request_of(300, 1, "ci"), queue_of(0), kStart));
}

TEST(Admission, TokensBeyondTheEstimateAreChargedBeforeTheEnd) {
  Admission admission({});
  admission.set_limits({{"ci", {.tokens_per_minute = 600}}});
  auto request = request_of(200, 1, "ci");
  EXPECT_FALSE(admission.ask(request, queue_of(0), kStart));
  EXPECT_EQ(admission.usage_of("ci", kStart)->tokens->remaining, 400);
  admission.grow(request, 300, kStart);
  EXPECT_EQ(request.token_estimate, 500U);
  EXPECT_EQ(admission.usage_of("ci", kStart)->tokens->remaining, 100);
  EXPECT_TRUE(admission.ask(request_of(101, 1, "ci"), queue_of(0), kStart));
  admission.on_end(request, 350, kStart);
  EXPECT_EQ(admission.usage_of("ci", kStart)->tokens->remaining, 250);
}

TEST(Admission, AQueryThatGrowsIsMoreInteractiveWork) {
  Admission admission({});
  auto query = query_of(20);
  EXPECT_FALSE(admission.ask(query, queue_of(0), kStart));
  admission.grow(query, 50, kStart);
  EXPECT_EQ(admission.lane(query_of(31), 100), Lane::Bulk);
  admission.on_end(query, 70, kStart);
  EXPECT_EQ(admission.lane(query_of(100), 100), Lane::Interactive);
}

TEST(Admission, CountsTheRequestsOfAKeyThatRun) {
  Admission admission({});
  admission.set_limits({{"ci", {.requests_at_once = 2}}});
  EXPECT_FALSE(admission.ask(request_of(1, 1, "ci"), queue_of(0), kStart));
  EXPECT_FALSE(admission.ask(request_of(2, 1, "ci"), queue_of(0), kStart));
  const auto refused = admission.ask(request_of(3, 1, "ci"), queue_of(0), kStart);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "key ci: 2 requests at once");
  admission.on_end(request_of(2, 1, "ci"), 2, kStart);
  EXPECT_FALSE(admission.ask(request_of(3, 1, "ci"), queue_of(0), kStart));
}

AdmissionRequest replies_of(std::uint64_t count) {
  return {.caller = "ci", .text_count = count, .request_count = count, .token_estimate = count};
}

TEST(Admission, EachOfSeveralRepliesIsARequestThatRuns) {
  Admission admission({});
  admission.set_limits({{"ci", {.requests_at_once = 4}}});
  EXPECT_FALSE(admission.ask(replies_of(3), queue_of(0), kStart));
  EXPECT_EQ(admission.ask(replies_of(2), queue_of(0), kStart)->reason,
            "key ci: 4 requests at once");
  EXPECT_FALSE(admission.ask(replies_of(1), queue_of(0), kStart));
  admission.on_end(replies_of(3), 3, kStart);
  EXPECT_FALSE(admission.ask(replies_of(3), queue_of(0), kStart));
  EXPECT_TRUE(admission.ask(replies_of(1), queue_of(0), kStart));
}

TEST(Admission, MoreRepliesThanMayRunAtOnceAreRefusedForGood) {
  Admission admission({});
  admission.set_limits({{"ci", {.requests_at_once = 1}}});
  const auto refused = admission.ask(replies_of(2), queue_of(0), kStart);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->is_final);
  EXPECT_TRUE(refused->is_own_limit);
  EXPECT_EQ(refused->reason, "key ci: 1 request at once, and 2 are asked for");
  EXPECT_FALSE(admission.ask(replies_of(1), queue_of(0), kStart));
  EXPECT_FALSE(admission.ask(replies_of(1), queue_of(0), kStart)->is_final);
}

// Of four a minute three are used, and another one comes in each 15 s.
TEST(Admission, EachOfSeveralRepliesIsARequestOfAMinute) {
  Admission admission({});
  admission.set_limits({{"ci", {.requests_per_minute = 4}}});
  EXPECT_FALSE(admission.ask(replies_of(3), queue_of(0), kStart));
  const auto refused = admission.ask(replies_of(2), queue_of(0), kStart);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->retry_after, seconds(15));
  EXPECT_FALSE(admission.ask(replies_of(1), queue_of(0), kStart));
}

TEST(Admission, TellsWhatAKeyHasLeft) {
  Admission admission(AdmissionOptions{});
  admission.set_limits(
      {{"ci", {.requests_per_minute = 60, .tokens_per_minute = 600}}, {"free", {}}});
  EXPECT_FALSE(admission.usage_of("free", kStart));
  EXPECT_FALSE(admission.usage_of("nobody", kStart));
  EXPECT_EQ(admission.usage_of("ci", kStart)->requests->remaining, 60);
  EXPECT_EQ(admission.usage_of("ci", kStart)->requests->reset, Duration{});
  EXPECT_FALSE(admission.ask(request_of(100, 1, "ci"), queue_of(0), kStart));
  const auto usage = admission.usage_of("ci", kStart);
  EXPECT_EQ(usage->requests->limit, 60);
  EXPECT_EQ(usage->requests->remaining, 59);
  EXPECT_EQ(usage->requests->reset, seconds(1));  // one of sixty a minute
  EXPECT_EQ(usage->tokens->remaining, 500);
  EXPECT_EQ(usage->tokens->reset, seconds(10));  // 100 of 600 a minute
}

TEST(Admission, ARequestThatTheServerRefusesCostsItsKeyNothing) {
  Admission admission({});
  admission.set_limits({{"ci", {.requests_per_minute = 1}}});
  EXPECT_FALSE(admission.ask(request_of(1, 1, "ci"), queue_of(100'000), kStart)->is_own_limit);
  EXPECT_FALSE(admission.ask(request_of(1, 1, "ci"), queue_of(0), kStart));
}

// A request of k texts is let in exactly when k requests of one of them are, one after the other,
// into the same queue.
TEST(Admission, TreatsTheTextsOfOneRequestAsThoseOfMany) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  int refused_count = 0;
  for (int round = 0; round < 2000; ++round) {
    const AdmissionOptions options{.queue_budget = seconds(2),
                                   .queued_tokens_most = 1000 + random() % 3000,
                                   .queued_texts_most = 50 + random() % 400};
    const CallerLimits limits{.tokens_per_minute = 1000 + random() % 3000};
    Admission one(options);
    Admission many(options);
    one.set_limits({{"ci", limits}});
    many.set_limits({{"ci", limits}});
    const std::uint64_t count = 1 + random() % 100;
    const std::uint64_t tokens = 1 + random() % 9;  // below the smallest bucket in all
    auto queue = queue_of(10 + random() % 3000);
    const bool is_in = !one.ask(request_of(count * tokens, count, "ci"), queue, kStart);
    bool are_in = true;
    for (std::uint64_t i = 0; i < count; ++i) {
      are_in &= !many.ask(request_of(tokens, 1, "ci"), queue, kStart);
      ++queue.queued_texts;
      queue.outstanding_tokens += tokens;
      queue.tokens_ahead += tokens;
    }
    ASSERT_EQ(is_in, are_in) << count << " texts of " << tokens << " tokens";
    refused_count += is_in ? 0 : 1;
  }
  EXPECT_GT(refused_count, 100);
  EXPECT_LT(refused_count, 1900);
}

}  // namespace
}  // namespace muster
