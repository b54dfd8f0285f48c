#include "worker/generation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/generation_fixture.h"

namespace muster {
namespace {

// Alone on one thread; among eleven others on two, with a cache that preempts: the same tokens.
TEST(GenerationTest, TokensDoNotDependOnCompanyThreadsOrPreemption) {
  for (const auto [precision, cache] : classes()) {
    auto tight = roomy();
    tight.block_count = 9;
    tight.step_tokens_most = 20;
    TestGeneration crowd(tight, precision, 2, 0, cache);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      ASSERT_TRUE(crowd.generation->add(seed, request_of(seed, seed % 2 == 0)));
    }
    crowd.run();
    EXPECT_GT(crowd.generation->preemption_count(), 0U);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      EXPECT_EQ(crowd.replies[seed], alone(seed, precision, cache)) << "seed " << seed;
      EXPECT_EQ(crowd.ends[seed], FinishReason::Length);
    }
  }
}

// By hand: a prompt of 20 tokens takes 2 blocks of 16, and the 33rd token begins a third. Kept
// blocks that nobody holds do not count.
TEST(GenerationTest, WhatTheCacheHoldsIsToldWhenItChanges) {
  TestGeneration one(roomy(), DecoderPrecision::Fp32, 1);
  Generate request;
  for (std::uint32_t id = 0; id < 20; ++id) request.ids.push_back(id);
  request.token_limit = 20;
  ASSERT_TRUE(one.generation->add(1, request));
  one.run();
  EXPECT_EQ(one.uses, (std::vector<CacheUse>{{2, 0}, {3, 0}, {0, 0}}));
  one.uses.clear();
  ASSERT_TRUE(one.generation->add(2, request));
  one.generation->step();
  EXPECT_EQ(one.uses, (std::vector<CacheUse>{{2, 0}}));
  one.generation->cancel(2);
  one.generation->cancel(2);
  EXPECT_EQ(one.uses, (std::vector<CacheUse>{{2, 0}, {0, 0}}));
}

// Three replies to one prompt and seed, side by side: each is what it is alone, to the last bit of
// its log-probabilities, and the first is that of a request for one.
TEST(GenerationTest, ChoicesDrawApartAndDoNotDependOnEachOther) {
  auto request = request_of(5, false);
  request.token_limit = 12;
  auto tight = roomy();
  tight.block_count = 9;
  tight.step_tokens_most = 20;
  TestGeneration crowd(tight, DecoderPrecision::Fp32, 2);
  request.sampling.logprob_count = 3;
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    request.sampling.choice = choice;
    ASSERT_TRUE(crowd.generation->add(choice, request));
  }
  crowd.run();
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    request.sampling.choice = choice;
    TestGeneration one(roomy(), DecoderPrecision::Fp32, 1);
    ASSERT_TRUE(one.generation->add(9, request));
    one.run();
    EXPECT_EQ(crowd.replies[choice], one.replies[9]);
    ASSERT_EQ(one.logprobs[9].size(), 12U);
    EXPECT_EQ(crowd.logprobs[choice], one.logprobs[9]);
  }
  EXPECT_NE(crowd.replies[1], crowd.replies[0]);
  EXPECT_NE(crowd.replies[2], crowd.replies[1]);
  request.sampling = request_of(5, false).sampling;
  TestGeneration plain(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(plain.generation->add(1, request));
  plain.run();
  EXPECT_EQ(plain.replies[1], crowd.replies[0]);
  EXPECT_TRUE(plain.logprobs.empty()) << "they are told only where they are asked for";
}

// The greedy token is the likeliest of those that are told, and their probabilities are shares.
TEST(GenerationTest, TheLikeliestIsTheGreedyToken) {
  auto request = request_of(4, true);
  request.sampling.logprob_count = kLogprobsMost;
  TestGeneration one(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(one.generation->add(1, request));
  one.run();
  ASSERT_EQ(one.logprobs[1].size(), one.replies[1].size());
  for (std::size_t i = 0; i < one.replies[1].size(); ++i) {
    const auto& logprobs = one.logprobs[1][i];
    ASSERT_EQ(logprobs.top.size(), kLogprobsMost);
    EXPECT_EQ(logprobs.top[0], std::pair(one.replies[1][i], logprobs.chosen));
    double sum = 0;
    for (std::size_t k = 0; k < logprobs.top.size(); ++k) {
      if (k > 0) {
        EXPECT_LE(logprobs.top[k].second, logprobs.top[k - 1].second);
      }
      sum += std::exp(logprobs.top[k].second);
    }
    EXPECT_LE(sum, 1 + 1e-6);
  }
}

// 100 ids in chunks of 48; what it chooses then is a token a step.
TEST(GenerationTest, AStepOfAPromptIsAnnouncedWithItsTokens) {
  TestGeneration one(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(one.generation->add(1, {.ids = Reply(100, 5), .token_limit = 5}));
  one.run();
  EXPECT_EQ(one.replies[1].size(), 5U);
  EXPECT_EQ(one.begun_steps, (std::vector<std::uint32_t>{48, 48, 4}));
}

// Three blocks of 16. At their 17th token the first one takes the third block, and the other gives
// way. It has 17 tokens when the first one has ended, and all are computed again.
TEST(GenerationTest, WhatIsComputedAgainAfterPreemptionIsAnnounced) {
  auto tight = roomy();
  tight.block_count = 3;
  tight.keeps_prefixes = false;
  TestGeneration two(tight, DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(two.generation->add(1, {.ids = Reply(15, 5), .token_limit = 10}));
  ASSERT_TRUE(two.generation->add(2, {.ids = Reply(15, 9), .token_limit = 10}));
  two.run();
  EXPECT_EQ(two.generation->preemption_count(), 1U);
  EXPECT_EQ(two.uses.back(), (CacheUse{0, 1}));
  EXPECT_EQ(two.begun_steps, (std::vector<std::uint32_t>{30, 17}));
  EXPECT_EQ(two.replies[2].size(), 10U);
}

// The second block of 16 is not there, and the first sequence needs it. What both were asked for is
// another worker's: neither has failed.
TEST(GenerationTest, AStepThatCannotBeComputedFailsNoSequence) {
  auto steps = roomy();
  steps.block_count = 3;
  TestGeneration one(steps, DecoderPrecision::Fp32, 1, /*blocks_missing=*/2);
  ASSERT_TRUE(one.generation->add(1, {.ids = Reply(20, 5), .token_limit = 3}));
  ASSERT_TRUE(one.generation->add(2, {.ids = Reply(3, 7), .token_limit = 3}));
  one.generation->step();
  EXPECT_EQ(one.broken, std::vector<std::string>{"2 blocks of the cache do not hold 20 tokens"});
  EXPECT_TRUE(one.errors.empty()) << one.errors.begin()->second;
  EXPECT_TRUE(one.ends.empty());
  EXPECT_TRUE(one.tokens.empty());
}

// Another worker gets the prompt and what was chosen before, and goes on as if nothing had been.
TEST(GenerationTest, ASequenceGoesOnElsewhere) {
  for (const std::uint64_t seed : {4U, 5U}) {
    const auto whole = alone(seed, DecoderPrecision::Fp32);
    for (const std::size_t known : {std::size_t{1}, whole.size() / 2, whole.size() - 1}) {
      auto request = request_of(seed, seed % 2 == 0);
      request.ids.insert(request.ids.end(), whole.begin(),
                         whole.begin() + static_cast<std::ptrdiff_t>(known));
      request.reply_count = static_cast<std::uint32_t>(known);
      request.token_limit -= static_cast<std::uint32_t>(known);
      TestGeneration other(roomy(), DecoderPrecision::Fp32, 1);
      ASSERT_TRUE(other.generation->add(9, request));
      other.run();
      EXPECT_EQ(other.replies[9],
                Reply(whole.begin() + static_cast<std::ptrdiff_t>(known), whole.end()))
          << "seed " << seed << " after " << known;
    }
  }
}

// A reply that is known is scored with the bits with which it was chosen: in chunks, in company,
// with a cache that preempts, and though its beginning is kept. Nothing is chosen behind it. They
// do not grow, so it is for an older one, which does, that one of them is preempted.
TEST(GenerationTest, WhatIsKnownIsScoredWithTheBitsOfItsChoice) {
  auto tight = roomy();
  tight.block_count = 6;
  tight.step_tokens_most = 20;
  tight.scored_most = 3;
  for (const auto [precision, cache] : classes()) {
    TestGeneration crowd(tight, precision, 2, 0, cache);
    ASSERT_TRUE(crowd.generation->add(7, {.ids = Reply(10, 5), .token_limit = 60}));
    std::map<SequenceId, std::vector<GeneratedToken>> wanted;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      auto request = request_behind(seed);
      wanted[seed] = computed_whole(request, precision, cache);
      for (auto& token : wanted[seed]) token.is_prompt = true;
      request.score_from = static_cast<std::uint32_t>(request.ids.size());
      for (const auto& token : wanted[seed]) request.ids.push_back(token.token);
      request.token_limit = 0;
      ASSERT_TRUE(crowd.generation->add(seed, std::move(request)));
    }
    crowd.run();
    EXPECT_GT(crowd.generation->preemption_count(), 0U);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      EXPECT_TRUE(has_same_bits(crowd.tokens[seed], wanted[seed])) << "seed " << seed;
      EXPECT_EQ(crowd.ends[seed], FinishReason::Length);
    }
  }
}

// The model has 128 positions: each of them is computed, and no token comes behind.
TEST(GenerationTest, APromptOfTheModelsLengthIsScored) {
  Reply ids(128);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(3 + i * 7 % 60);
  const Generate request{
      .ids = ids, .token_limit = 0, .score_from = 1, .sampling = {.logprob_count = 0}};
  TestGeneration whole(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(whole.generation->add(1, request));
  whole.run();
  ASSERT_EQ(whole.tokens[1].size(), 127U);
  EXPECT_EQ(whole.ends[1], FinishReason::Length);
  // What is before the last id does not depend on it.
  auto shorter = request;
  shorter.ids.pop_back();
  TestGeneration less(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(less.generation->add(1, shorter));
  less.run();
  auto told = whole.tokens[1];
  EXPECT_EQ(told.back().token, ids.back());
  EXPECT_TRUE(told.back().is_prompt && told.back().logprobs);
  told.pop_back();
  EXPECT_EQ(told, less.tokens[1]);
}

TEST(GenerationTest, AScoredPromptIsContinuedAsWithoutScores) {
  auto request = request_of(5, false);
  request.sampling.logprob_count = 1;
  TestGeneration plain(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(plain.generation->add(1, request));
  plain.run();
  request.score_from = 1;
  TestGeneration scored(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(scored.generation->add(1, request));
  scored.run();
  auto told = scored.tokens[1];
  ASSERT_EQ(told.size(), request.ids.size() - 1 + plain.tokens[1].size());
  for (std::size_t i = 1; i < request.ids.size(); ++i) {
    EXPECT_EQ(told[i - 1].token, request.ids[i]);
    EXPECT_TRUE(told[i - 1].is_prompt && told[i - 1].logprobs);
  }
  told.erase(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(request.ids.size() - 1));
  EXPECT_EQ(told, plain.tokens[1]);
}

TEST(GenerationTest, BehindAKeptBeginningEveryBitIsAsWithoutIt) {
  for (const auto [precision, cache] : classes()) {
    auto steps = roomy();
    steps.step_tokens_most = 20;
    TestGeneration behind(steps, precision, 2, 0, cache);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      ASSERT_TRUE(behind.generation->add(seed, request_behind(seed)));
      behind.run();  // one after the other: what an ended one has left is used
      EXPECT_EQ(behind.cached.at(seed), seed == 1 ? 0U : 32U);
      EXPECT_TRUE(has_same_bits(behind.tokens[seed],
                                computed_whole(request_behind(seed), precision, cache)))
          << "seed " << seed << " in " << decoder_precision_name(precision);
    }
  }
}

TEST(GenerationTest, AConversationGoesOnBehindItsOwnReply) {
  TestGeneration talk(roomy(), DecoderPrecision::Fp32, 1);
  auto request = request_behind(2);
  ASSERT_TRUE(talk.generation->add(1, request));
  talk.run();
  request.ids.insert(request.ids.end(), talk.replies[1].begin(), talk.replies[1].end());
  // The last token of a reply is never computed, and only whole blocks are kept.
  const auto kept = static_cast<std::uint32_t>((request.ids.size() - 1) / 16 * 16);
  request.ids.insert(request.ids.end(), {5, 6, 7});
  request.token_limit = 6;
  ASSERT_TRUE(talk.generation->add(2, request));
  talk.run();
  EXPECT_EQ(talk.cached.at(2), kept);
  EXPECT_TRUE(has_same_bits(talk.tokens[2], computed_whole(request, DecoderPrecision::Fp32)));
}

// Twelve that begin alike share what one of them computes, and give it back to each other.
TEST(GenerationTest, SharedBeginningsInCompanyAndAfterPreemptionChangeNothing) {
  auto tight = roomy();
  tight.block_count = 12;
  tight.step_tokens_most = 20;
  TestGeneration crowd(tight, DecoderPrecision::Bf16, 2);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    ASSERT_TRUE(crowd.generation->add(seed, request_behind(seed)));
  }
  crowd.run();
  EXPECT_GT(crowd.generation->preemption_count(), 0U);
  std::size_t shared_count = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    shared_count += crowd.cached.at(seed) > 0 ? 1 : 0;
    EXPECT_TRUE(has_same_bits(crowd.tokens[seed],
                              computed_whole(request_behind(seed), DecoderPrecision::Bf16)))
        << "seed " << seed;
  }
  EXPECT_GT(shared_count, 0U);
}

// A cache of ten blocks: what ended replies have left is evicted for others while these run. It is
// computed again, with the same bits.
TEST(GenerationTest, WhatIsEvictedWhileRepliesRunChangesNothing) {
  auto tight = roomy();
  tight.block_count = 10;
  tight.step_tokens_most = 20;
  for (const auto [precision, cache] : classes()) {
    TestGeneration crowd(tight, precision, 2, 0, cache);
    std::map<SequenceId, Generate> asked;
    const auto ask = [&](SequenceId id, Generate request) {
      asked[id] = request;
      ASSERT_TRUE(crowd.generation->add(id, std::move(request)));
    };
    ask(1, request_behind(1));
    crowd.run();
    ask(2, request_behind(2));
    crowd.run();
    EXPECT_EQ(crowd.cached.at(2), 32U) << "it is still there";
    for (std::uint64_t seed = 3; seed <= 14; ++seed) {
      auto unrelated = request_of(seed, seed % 2 == 0);
      unrelated.sampling.logprob_count = 5;
      ask(seed, std::move(unrelated));
    }
    ask(15, request_behind(15));
    crowd.run();
    EXPECT_LT(crowd.cached.at(15), 32U) << "it is gone";
    ask(16, request_behind(16));
    crowd.run();
    EXPECT_EQ(crowd.cached.at(16), 32U) << "the one before it has computed it anew";
    for (const auto& [id, request] : asked) {
      EXPECT_TRUE(has_same_bits(crowd.tokens[id], computed_whole(request, precision, cache)))
          << id << " in " << decoder_precision_name(precision);
    }
  }
}

// Of 60 ids three whole blocks are kept once the first one has computed them in its first step; the
// others begin behind them, and each reply is what it is alone.
TEST(GenerationTest, OfSeveralChoicesOneComputesThePrompt) {
  auto request = request_behind(3);
  request.ids.resize(60, 9);
  TestGeneration crowd(roomy(), DecoderPrecision::Bf16, 2);
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    request.sampling.choice = choice;
    ASSERT_TRUE(crowd.generation->add(choice, request));
  }
  crowd.run();
  for (std::uint32_t choice = 0; choice < 3; ++choice) {
    request.sampling.choice = choice;
    EXPECT_EQ(crowd.cached.at(choice), choice == 0 ? 0U : 48U);
    EXPECT_TRUE(
        has_same_bits(crowd.tokens[choice], computed_whole(request, DecoderPrecision::Bf16)))
        << "choice " << choice;
  }
}

TEST(GenerationTest, AnotherScopeSharesNothing) {
  TestGeneration both(roomy(), DecoderPrecision::Fp32, 1);
  for (const std::uint64_t id : {1U, 2U}) {
    auto request = request_behind(2);
    request.prefix_scope = id;
    ASSERT_TRUE(both.generation->add(id, std::move(request)));
    both.run();
    EXPECT_EQ(both.cached.at(id), 0U);
  }
  EXPECT_EQ(both.replies[1], both.replies[2]);
}

TEST(GenerationTest, AStopIdEndsAReplyAndIsNotPartOfIt) {
  const auto whole = alone(2, DecoderPrecision::Fp32);
  auto request = request_of(2, true);
  request.stop_ids = {whole[3]};
  TestGeneration one(roomy(), DecoderPrecision::Fp32, 1);
  ASSERT_TRUE(one.generation->add(1, request));
  one.run();
  const auto first = std::find(whole.begin(), whole.end(), whole[3]);
  EXPECT_EQ(one.replies[1], Reply(whole.begin(), first));
  EXPECT_EQ(one.ends[1], FinishReason::Stop);
}

TEST(GenerationTest, ACancelledSequenceLeavesTheOthersAsTheyAre) {
  TestGeneration crowd(roomy(), DecoderPrecision::Fp32, 1);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    ASSERT_TRUE(crowd.generation->add(seed, request_of(seed, seed % 2 == 0)));
  }
  crowd.generation->step();
  crowd.generation->cancel(1);
  crowd.run();
  EXPECT_EQ(crowd.ends.count(1), 0U);
  for (const std::uint64_t seed : {0U, 2U, 3U}) {
    EXPECT_EQ(crowd.replies[seed], alone(seed, DecoderPrecision::Fp32));
  }
}

TEST(GenerationTest, WhatCannotBeDoneIsRefusedByName) {
  TestGeneration one(roomy(), DecoderPrecision::Fp32, 1);
  const auto message = [&](Generate request) {
    const auto added = one.generation->add(1, std::move(request));
    return added ? std::string() : added.error().message;
  };
  EXPECT_EQ(message({.ids = {67}, .token_limit = 1}),
            "a token id is not in the vocabulary of 67: 67");
  EXPECT_EQ(message({.ids = {5}, .token_limit = 1, .sampling = {.temperature = -1}}),
            "temperature must be from 0 to 100: -1");
  EXPECT_EQ(message({.ids = Reply(128, 5), .token_limit = 1}),
            "the prompt leaves no room for a reply in the model's 128 tokens: 128");
  EXPECT_EQ(message({.ids = Reply(129, 5), .token_limit = 0}),
            "the prompt is longer than the model's 128 tokens: 129");
  EXPECT_EQ(message({.ids = {5}, .token_limit = 1}), "");
  EXPECT_EQ(message({.ids = {5}, .token_limit = 1}), "a sequence has this id: 1");
}

}  // namespace
}  // namespace muster
