#include "coordinator/decoder_canary.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace muster {
namespace {

Tokens told(std::uint32_t token, float logprob) {
  return {.begun = {},
          .tokens = {{.sequence = kCanarySequence,
                      .token = token,
                      .is_prompt = false,
                      .logprobs = TokenLogprobs{.chosen = logprob, .top = {{9, -0.5F}}}}}};
}

TEST(CanaryRequest, FillsABlockAndBeginsAnother) {
  const auto request = canary_request(32000, 4096);
  EXPECT_EQ(request.ids.size(), 20U) << "a block has 16";
  EXPECT_EQ(request.ids[0], 7919U);
  EXPECT_EQ(request.ids[4], 7595U) << "5 x 7919 - 32000";
  EXPECT_EQ(std::set(request.ids.begin(), request.ids.end()).size(), 20U);
  EXPECT_EQ(request.token_limit, 4U);
  EXPECT_EQ(request.sampling.temperature, 0.0) << "the likeliest";
  EXPECT_EQ(request.sampling.logprob_count, 20U);
  EXPECT_TRUE(request.stop_ids.empty());
}

TEST(CanaryRequest, FitsAShortContextAndASmallVocabulary) {
  const auto sizes = [](std::uint32_t length_max) {
    const auto request = canary_request(3, length_max);
    for (const auto id : request.ids) EXPECT_LT(id, 3U);
    return std::pair(request.ids.size(), request.token_limit);
  };
  EXPECT_EQ(sizes(10), std::pair(std::size_t{6}, 4U));
  EXPECT_EQ(sizes(3), std::pair(std::size_t{1}, 2U));
  EXPECT_EQ(sizes(1), std::pair(std::size_t{1}, 0U)) << "nothing can be chosen";
}

TEST(CanaryAnswerTest, HoldsTokensAndLogprobsByTheirBits) {
  CanaryAnswer answer(2);
  ASSERT_TRUE(answer.add({}));
  ASSERT_TRUE(answer.add(told(7, -1)));
  EXPECT_FALSE(answer.is_whole());
  ASSERT_TRUE(answer.add(told(8, -2)));
  EXPECT_TRUE(answer.is_whole());
  std::vector<float> expected;
  for (const auto& [token, logprob] : {std::pair(7U, -1.0F), std::pair(8U, -2.0F)}) {
    const std::vector row{std::bit_cast<float>(token), logprob, std::bit_cast<float>(9U), -0.5F};
    expected.insert(expected.end(), row.begin(), row.end());
  }
  EXPECT_EQ(answer.row(), expected);
  EXPECT_EQ(answer.add(told(8, -2)).error().kind, ErrorKind::Corrupt) << "one too many";
}

TEST(CanaryAnswerTest, RefusesWhatItHasNotAskedFor) {
  auto other = told(7, -1);
  other.tokens[0].sequence = 1;
  EXPECT_FALSE(CanaryAnswer(2).add(other));
  auto silent = told(7, -1);
  silent.tokens[0].logprobs.reset();
  EXPECT_FALSE(CanaryAnswer(2).add(silent));
  auto prompt = told(7, -1);
  prompt.tokens[0].is_prompt = true;
  EXPECT_FALSE(CanaryAnswer(2).add(prompt));
}

}  // namespace
}  // namespace muster
