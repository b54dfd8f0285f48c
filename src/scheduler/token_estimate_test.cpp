#include "scheduler/token_estimate.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(TokenEstimate, TakesAByteForATokenBeforeItHasSeenAny) {
  const TokenEstimate estimate;
  EXPECT_FALSE(estimate.is_known());
  EXPECT_EQ(estimate.tokens(700), 700U);
}

TEST(TokenEstimate, GoesByWhatTextsHaveHad) {
  TokenEstimate estimate;
  estimate.learn(400, 100);
  EXPECT_TRUE(estimate.is_known());
  EXPECT_EQ(estimate.tokens(700), 175U);
  estimate.learn(400, 300);  // 400 tokens of 800 bytes
  EXPECT_EQ(estimate.tokens(701), 351U);
}

// 64 KiB at 4 bytes a token, then as much at 1: (16,384 + 65,536) / 131,072 bytes, scaled to 64
// KiB.
TEST(TokenEstimate, FollowsAnotherCorpus) {
  TokenEstimate estimate;
  estimate.learn(65'536, 16'384);
  estimate.learn(65'536, 65'536);
  EXPECT_EQ(estimate.tokens(1000), 625U);
  for (int i = 0; i < 20; ++i) estimate.learn(65'536, 65'536);
  EXPECT_EQ(estimate.tokens(1000), 1000U);
}

// White space has no token in many vocabularies: whoever sends much of it does not make the texts
// of others look free.
TEST(TokenEstimate, ATextIsNeverFree) {
  TokenEstimate estimate;
  estimate.learn(65'536, 0);
  EXPECT_EQ(estimate.tokens(1600), 100U);
  EXPECT_EQ(estimate.tokens(1), 1U);
  EXPECT_EQ(estimate.tokens(0), 0U);
}

TEST(TokenEstimate, AnEmptyTextTeachesNothing) {
  TokenEstimate estimate;
  estimate.learn(0, 0);
  EXPECT_FALSE(estimate.is_known());
}

}  // namespace
}  // namespace muster
