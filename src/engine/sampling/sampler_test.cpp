#include "engine/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "engine/sampling/counter_random.h"

namespace muster::engine {
namespace {

// Source: Random123 1.14, tests/kat_vectors, philox4x32 10.
TEST(CounterRandomTest, IsPhiloxByItsTestVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const auto ones = 0xffffffffU;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandomTest, NumbersAreOfSeedChoiceAndPositionAlone) {
  const auto drawn = [](std::uint64_t seed, std::uint32_t choice, std::uint64_t position) {
    return uniform_at({.seed = seed, .choice = choice, .position = position});
  };
  EXPECT_EQ(drawn(5, 0, 9), drawn(5, 0, 9));
  EXPECT_NE(drawn(5, 0, 9), drawn(5, 0, 10));
  EXPECT_NE(drawn(5, 0, 9), drawn(6, 0, 9));
  EXPECT_NE(drawn(5, 0, 9), drawn(5, 1, 9));
  // The position is the lower half of the counter, the choice its third word, the seed the key: of
  // four words the first 53 bits.
  const auto number = [](const std::array<std::uint32_t, 4>& words) {
    return static_cast<double>((std::uint64_t{words[0]} << 32U | words[1]) >> 11U) /
           9007199254740992.0;  // 2^53
  };
  EXPECT_EQ(drawn((2ULL << 32U) + 3, 0, (7ULL << 32U) + 5), number(philox({5, 7, 0, 0}, {3, 2})));
  EXPECT_EQ(drawn(3, 4, 5), number(philox({5, 0, 4, 0}, {3, 0})));
  double sum = 0;
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const double value = drawn(1, 0, i);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
}

std::uint32_t token_of(std::vector<float> logits, const SamplingOptions& options,
                       std::uint64_t position = 0, const TokenHistory* history = nullptr) {
  const auto sampled =
      sample(logits, options, history == nullptr ? TokenHistory(options) : *history, position);
  EXPECT_TRUE(sampled);
  return sampled ? sampled->token : 0;
}

/// How often each token is drawn over many positions.
std::map<std::uint32_t, double> shares(const std::vector<float>& logits,
                                       const SamplingOptions& options) {
  constexpr int kDraws = 20'000;
  std::map<std::uint32_t, double> counts;
  for (int i = 0; i < kDraws; ++i) {
    counts[token_of(logits, options, static_cast<std::uint64_t>(i))] += 1.0 / kDraws;
  }
  return counts;
}

// Probabilities 0.5, 0.25, 0.125, 0.125.
const std::vector<float> kLogits{std::log(4.0F), std::log(2.0F), 0.0F, 0.0F};

TEST(SamplerTest, WithoutTemperatureTheLikeliestWinsAndTheFirstOfEquals) {
  EXPECT_EQ(token_of({1, 3, 2}, {}), 1U);
  EXPECT_EQ(token_of({1, 3, 3}, {}), 1U);
}

TEST(SamplerTest, TokensAreDrawnByTheirProbability) {
  const auto drawn = shares(kLogits, {.temperature = 1});
  EXPECT_NEAR(drawn.at(0), 0.5, 0.015);
  EXPECT_NEAR(drawn.at(1), 0.25, 0.015);
  EXPECT_NEAR(drawn.at(2), 0.125, 0.01);
  EXPECT_NEAR(drawn.at(3), 0.125, 0.01);
}

TEST(SamplerTest, TemperatureTwoTakesRoots) {
  // Square roots of 4, 2, 1, 1: 2, 1.414, 1, 1 of 5.414.
  const auto drawn = shares(kLogits, {.temperature = 2});
  EXPECT_NEAR(drawn.at(0), 2 / 5.414, 0.015);
  EXPECT_NEAR(drawn.at(2), 1 / 5.414, 0.015);
}

TEST(SamplerTest, TopKKeepsTheLikeliestAndTheSmallestIdsOfEquals) {
  const auto drawn = shares(kLogits, {.temperature = 1, .top_k = 3});
  EXPECT_EQ(drawn.count(3), 0U);
  EXPECT_NEAR(drawn.at(0), 4.0 / 7, 0.015);
  EXPECT_NEAR(drawn.at(2), 1.0 / 7, 0.015);
}

TEST(SamplerTest, TopPKeepsTheFewestThatReachIt) {
  EXPECT_EQ(shares(kLogits, {.temperature = 1, .top_p = 0.5}).size(), 1U);
  EXPECT_EQ(shares(kLogits, {.temperature = 1, .top_p = 0.51}).size(), 2U);
  EXPECT_EQ(shares(kLogits, {.temperature = 1, .top_p = 0.8}).size(), 3U);
  EXPECT_EQ(shares(kLogits, {.temperature = 1, .top_p = 0}).size(), 1U);
  // Of what top_k has left: 4/7 and 2/7 of three.
  EXPECT_EQ(shares(kLogits, {.temperature = 1, .top_k = 3, .top_p = 0.57}).size(), 1U);
}

// Also where their weights are the same float32: e^-1.9e-8.
TEST(SamplerTest, ATopPOfNothingIsTheLikeliest) {
  EXPECT_EQ(token_of({20.0F, 20.000002F}, {.temperature = 100, .top_p = 0}), 1U);
}

TEST(SamplerTest, MinPIsAShareOfTheLikeliest) {
  EXPECT_EQ(shares(kLogits, {.temperature = 1, .min_p = 0.26}).size(), 2U);
  EXPECT_EQ(shares(kLogits, {.temperature = 1, .min_p = 0.24}).size(), 4U);
}

/// What is drawn from all tokens sorted, step by step as the options' source has it, in float64.
std::uint32_t token_by_sorting(const std::vector<float>& logits, const SamplingOptions& options,
                               std::uint64_t position) {
  std::vector<std::pair<double, std::uint32_t>> kept;  // weight, token
  const float largest = *std::max_element(logits.begin(), logits.end());
  for (std::uint32_t i = 0; i < logits.size(); ++i) {
    kept.emplace_back(std::exp((double{logits[i]} - largest) / options.temperature), i);
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (options.top_k > 0) kept.resize(std::min<std::size_t>(options.top_k, kept.size()));
  double total = 0;
  for (const auto& [weight, token] : kept) total += weight;
  double sum = 0;
  std::size_t count = 0;
  while (count < kept.size() && (count == 0 || sum < options.top_p * total)) {
    sum += kept[count++].first;
  }
  if (options.top_p < 1) kept.resize(count);
  std::erase_if(kept, [&](const auto& one) { return one.first < options.min_p; });
  std::sort(kept.begin(), kept.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  total = 0;
  for (const auto& [weight, token] : kept) total += weight;
  double left = total * uniform_at({.seed = options.seed, .choice = 0, .position = position});
  for (const auto& [weight, token] : kept) {
    left -= weight;
    if (left < 0) return token;
  }
  return kept.back().second;
}

// A vocabulary of several chunks and blocks, likely tokens and rare ones. A place within 1e-6 of
// the end of a token's share may be the next one's: of 1,000 draws one is allowed to.
TEST(SamplerTest, ALargeVocabularyIsDrawnFromAsIfItWereSorted) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(5000);
  for (auto& logit : logits) logit = normal(random);
  for (const auto& options :
       {SamplingOptions{.temperature = 1, .seed = 1},
        SamplingOptions{.temperature = 0.6, .top_p = 0.9, .seed = 2},
        SamplingOptions{.temperature = 1.5, .top_p = 0.3, .seed = 3},
        SamplingOptions{.temperature = 1, .top_k = 40, .seed = 4},
        SamplingOptions{.temperature = 1, .min_p = 0.02, .seed = 5},
        SamplingOptions{.temperature = 1, .top_p = 0.8, .min_p = 0.01, .seed = 6},
        SamplingOptions{.temperature = 2, .top_k = 900, .top_p = 0.7, .seed = 7}}) {
    int others = 0;
    for (std::uint64_t position = 0; position < 1000; ++position) {
      if (token_of(logits, options, position) != token_by_sorting(logits, options, position)) {
        ++others;
      }
    }
    EXPECT_LE(others, 1) << "seed " << options.seed;
  }
}

TEST(SamplerTest, PenaltiesCountPromptAndReplyAsTheirSourcesDo) {
  SamplingOptions options{.repetition_penalty = 2};
  TokenHistory history(options);
  history.add_prompt(1);
  // 3 / 2 is below 2; -1 x 2 is below -1.5.
  EXPECT_EQ(token_of({2, 3}, options, 0, &history), 0U);
  EXPECT_EQ(token_of({-1.5F, -1}, options, 0, &history), 0U);

  options = {.presence_penalty = 1};
  TokenHistory presence(options);
  presence.add_prompt(1);
  EXPECT_EQ(token_of({2, 2.5F}, options, 0, &presence), 1U);  // a prompt's token is not punished
  presence.add_reply(1);
  EXPECT_EQ(token_of({2, 2.5F}, options, 0, &presence), 0U);

  options = {.frequency_penalty = 0.4};
  TokenHistory frequency(options);
  frequency.add_reply(1);
  EXPECT_EQ(token_of({2, 2.5F}, options, 0, &frequency), 1U);
  frequency.add_reply(1);
  EXPECT_EQ(token_of({2, 2.5F}, options, 0, &frequency), 0U);
}

TEST(SamplerTest, ABiasIsAdded) { EXPECT_EQ(token_of({1, 0}, {.logit_bias = {{1, 2.0F}}}), 1U); }

// Two replies to one request draw apart, and each by the probabilities.
TEST(SamplerTest, EachChoiceDrawsItsOwnTokensAndTheFirstThoseOfARequestForOne) {
  const auto drawn = [](const SamplingOptions& options) {
    std::vector<std::uint32_t> tokens;
    for (std::uint64_t i = 0; i < 64; ++i) tokens.push_back(token_of(kLogits, options, i));
    return tokens;
  };
  const auto of_one = drawn({.temperature = 1, .seed = 7});
  EXPECT_EQ(drawn({.temperature = 1, .seed = 7, .choice = 0}), of_one);
  const auto second = drawn({.temperature = 1, .seed = 7, .choice = 1});
  EXPECT_EQ(drawn({.temperature = 1, .seed = 7, .choice = 1}), second);
  EXPECT_NE(second, of_one);
  EXPECT_NE(second, drawn({.temperature = 1, .seed = 7, .choice = 2}));
  EXPECT_NE(second, drawn({.temperature = 1, .seed = 8, .choice = 0})) << "nor another seed's";
  EXPECT_NEAR(shares(kLogits, {.temperature = 1, .choice = 3}).at(0), 0.5, 0.015);
}

SampledToken sampled_of(std::vector<float> logits, const SamplingOptions& options) {
  TokenHistory history(options);
  history.add_reply(0);
  auto sampled = sample(logits, options, history, 0);
  EXPECT_TRUE(sampled);
  return sampled ? *std::move(sampled) : SampledToken{};
}

TEST(SamplerTest, LogprobsAreThoseOfTheModelWhateverIsDoneToItsLogits) {
  for (const auto& options :
       {SamplingOptions{.logprob_count = 2, .logit_bias = {{1, 9.0F}}},
        SamplingOptions{.repetition_penalty = 900, .presence_penalty = 9, .logprob_count = 2},
        SamplingOptions{.temperature = 0.001, .frequency_penalty = 9, .logprob_count = 2}}) {
    const auto sampled = sampled_of(kLogits, options);
    EXPECT_EQ(sampled.token, 1U) << "by bias or penalty";
    ASSERT_TRUE(sampled.logprobs);
    EXPECT_NEAR(sampled.logprobs->chosen, std::log(0.25), 1e-6);
    ASSERT_EQ(sampled.logprobs->top.size(), 2U);
    EXPECT_EQ(sampled.logprobs->top[0].first, 0U);
    EXPECT_NEAR(sampled.logprobs->top[0].second, std::log(0.5), 1e-6);
    EXPECT_EQ(sampled.logprobs->top[1].first, 1U);
    EXPECT_NEAR(sampled.logprobs->top[1].second, std::log(0.25), 1e-6);
  }
}

TEST(SamplerTest, LogprobsComeAsManyAsAreAskedFor) {
  EXPECT_FALSE(sampled_of(kLogits, {}).logprobs);
  const auto chosen = sampled_of(kLogits, {.logprob_count = 0}).logprobs;
  ASSERT_TRUE(chosen);
  EXPECT_NEAR(chosen->chosen, std::log(0.5), 1e-6);
  EXPECT_TRUE(chosen->top.empty());
  // All four of them, though five are asked for; of equals the smallest id first.
  const auto all = sampled_of({1, 2, 1, 2}, {.logprob_count = 5}).logprobs;
  ASSERT_TRUE(all);
  std::vector<std::uint32_t> ids;
  for (const auto& [id, logprob] : all->top) ids.push_back(id);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{1, 3, 0, 2}));
}

// One that is known already, by the logits before it.
TEST(SamplerTest, AKnownTokenIsScoredAsAChosenOne) {
  const auto chosen = sampled_of(kLogits, {.logprob_count = 2});
  const auto scored = score(kLogits, chosen.token, 2);
  ASSERT_TRUE(scored);
  EXPECT_EQ(*scored, *chosen.logprobs);
  EXPECT_NEAR(score(kLogits, 1, 0)->chosen, std::log(0.25), 1e-6);
  const std::vector<float> lost{0, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_FALSE(score(lost, 0, 1));
}

// e^1000 is beyond float64, and e^-1000 is 0 there.
TEST(SamplerTest, LogprobsOfLargeLogitsAreExact) {
  const auto large = sampled_of({1000, 999}, {.logprob_count = 2}).logprobs;
  ASSERT_TRUE(large);
  EXPECT_NEAR(large->chosen, -std::log(1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(large->top[1].second, -1 - std::log(1 + std::exp(-1.0)), 1e-6);
  const auto small = sampled_of({-1000, -1000}, {.logprob_count = 1}).logprobs;
  ASSERT_TRUE(small);
  EXPECT_NEAR(small->chosen, std::log(0.5), 1e-6);
  // A million terms of e^-14 are 0.83 together; a sum in float32 would round each by 0.4 %.
  std::vector<float> many(1'000'001, -14);
  many[0] = 0;
  const auto lost = sampled_of(many, {.logprob_count = 0}).logprobs;
  ASSERT_TRUE(lost);
  EXPECT_NEAR(lost->chosen, -std::log(1 + 1e6 * std::exp(-14.0)), 1e-6);
  EXPECT_EQ(sampled_of({0, -200}, {.logprob_count = 0}).logprobs->chosen, 0) << "never above 0";
}

TEST(SamplerTest, LogitsThatAreNoNumbersAreAnError) {
  const float lowest = -std::numeric_limits<float>::infinity();
  std::vector<float> nothing{lowest, lowest};
  EXPECT_FALSE(sample(nothing, {}, TokenHistory({}), 0));
  std::vector<float> broken{1, std::numeric_limits<float>::quiet_NaN()};
  const auto refused = sample(broken, {}, TokenHistory({}), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Corrupt) << "that is no fault of muster's";
  // Before the likeliest are sorted: what is no number has no order.
  std::vector<float> unordered(100, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < unordered.size(); i += 2) unordered[i] = static_cast<float>(i);
  EXPECT_FALSE(sample(unordered, {.logprob_count = 20}, TokenHistory({}), 0));
}

TEST(SamplerTest, OptionsOutOfRangeAreNamed) {
  const auto message = [](const SamplingOptions& options) {
    const auto checked = check_sampling(options, 10);
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.temperature = -1}), "temperature must be from 0 to 100: -1");
  EXPECT_EQ(message({.temperature = std::nan("")}), "temperature must be from 0 to 100: nan");
  EXPECT_EQ(message({.top_p = 1.5}), "top_p must be from 0 to 1: 1.5");
  EXPECT_EQ(message({.min_p = -0.1}), "min_p must be from 0 to 1: -0.1");
  EXPECT_EQ(message({.repetition_penalty = 0}), "repetition_penalty must be from 0.001 to 1000: 0");
  EXPECT_EQ(message({.logprob_count = 21}), "the number of logprobs must be at most 20: 21");
  EXPECT_EQ(message({.logit_bias = {{10, 1.0F}}}),
            "a token with a bias must be in the vocabulary: 10");
}

}  // namespace
}  // namespace muster::engine
