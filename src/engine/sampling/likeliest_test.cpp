#include "engine/sampling/likeliest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace muster::engine {
namespace {

/// By sorting all of them.
std::vector<std::uint32_t> expected(const std::vector<float>& logits, std::size_t count) {
  std::vector<std::uint32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0U);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return logits[a] > logits[b]; });
  ids.resize(std::min(count, ids.size()));
  return ids;
}

// One block and part of one, fewer and more than there are blocks, and none.
TEST(LikeliestTest, AreTheFirstOfAllSorted) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const std::size_t size : {1U, 63U, 64U, 65U, 1000U, 4999U}) {
    std::vector<float> logits(size);
    for (auto& logit : logits) logit = normal(random);
    for (const std::size_t count : {0U, 1U, 2U, 16U, 20U, 79U, 80U, 2000U, 6000U}) {
      EXPECT_EQ(likeliest(logits, count), expected(logits, count)) << count << " of " << size;
    }
  }
}

TEST(LikeliestTest, OfEqualsTheSmallerIdsAreFirst) {
  std::mt19937 random(3);
  std::vector<float> logits(3000);
  for (auto& logit : logits) logit = static_cast<float>(random() % 7);
  for (const std::size_t count : {1U, 20U, 40U, 700U}) {
    EXPECT_EQ(likeliest(logits, count), expected(logits, count)) << count;
  }
  EXPECT_EQ(likeliest(std::vector<float>(500, -1.0F), 3), (std::vector<std::uint32_t>{0, 1, 2}));
}

// All of the likeliest stand in one block, which has more of them than there are asked for.
TEST(LikeliestTest, MayAllStandTogether) {
  std::vector<float> logits(3000, -5.0F);
  for (std::size_t i = 0; i < 30; ++i) logits[130 + i] = static_cast<float>(i);
  EXPECT_EQ(likeliest(logits, 3), (std::vector<std::uint32_t>{159, 158, 157}));
}

}  // namespace
}  // namespace muster::engine
