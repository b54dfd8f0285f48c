#include "scheduler/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace muster {
namespace {

using Parts = std::vector<StepPart>;

StepOptions small() {
  return {.block_tokens = 4,
          .block_count = 8,
          .step_tokens_most = 10,
          .sequences_most = 3,
          .length_max = 30};
}

TEST(StepSchedulerTest, APromptIsComputedInChunksAndThenTokenByToken) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(7, 12, 5));
  EXPECT_EQ(steps.next(), (Parts{{7, 0, 10, false}}));
  EXPECT_EQ(steps.blocks(7).size(), 3U);
  steps.complete();
  EXPECT_EQ(steps.next(), (Parts{{7, 10, 2, true}}));
  steps.complete();
  EXPECT_TRUE(steps.append(7));
  EXPECT_EQ(steps.next(), (Parts{{7, 12, 1, true}}));
  EXPECT_EQ(steps.blocks(7).size(), 4U);
}

TEST(StepSchedulerTest, WhoGeneratesGoesBeforePrompts) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(1, 3, 9));
  steps.next();
  steps.complete();
  EXPECT_TRUE(steps.append(1));
  ASSERT_TRUE(steps.add(2, 12, 1));
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 1, true}, {2, 0, 9, false}}));
}

TEST(StepSchedulerTest, TheLimitAndTheModelsLengthEndAReply) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(1, 3, 2));
  EXPECT_TRUE(steps.append(1));
  EXPECT_FALSE(steps.append(1));
  ASSERT_TRUE(steps.add(2, 29, 9));  // room for one token in 30
  EXPECT_FALSE(steps.append(2));
}

TEST(StepSchedulerTest, RefusesWhatCouldNeverBeComputed) {
  StepScheduler steps(small());
  EXPECT_EQ(steps.add(1, 30, 1).error().message,
            "the prompt leaves no room for a reply in the model's 30 tokens: 30");
  EXPECT_EQ(steps.add(1, 0, 1).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(steps.add(1, 1, 0).error().kind, ErrorKind::InvalidArgument);
  auto options = small();
  options.block_count = 2;
  StepScheduler tight(options);
  // 6 + 3 tokens, of which the last is never computed: 8 fit.
  EXPECT_TRUE(tight.add(1, 6, 3));
  EXPECT_EQ(tight.add(2, 6, 4).error().message,
            "the cache of 8 tokens does not hold a prompt of 6 with a reply of 4");
}

TEST(StepSchedulerTest, WhereBlocksRunOutTheYoungestIsComputedAgainLater) {
  auto options = small();
  options.block_count = 5;
  StepScheduler steps(options);
  ASSERT_TRUE(steps.add(1, 4, 9));
  ASSERT_TRUE(steps.add(2, 4, 9));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 4, true}, {2, 0, 4, true}}));
  // Four tokens more each: 1 and 2 have two blocks each then, and one is left.
  for (int i = 0; i < 5; ++i) {
    steps.complete();
    steps.append(1);
    steps.append(2);
    if (i < 4) {
      EXPECT_EQ(steps.next().size(), 2U);
    }
  }
  // Both want a third block; the older gets the last one, the younger gives back its own.
  EXPECT_EQ(steps.next(), (Parts{{1, 8, 1, true}}));
  EXPECT_EQ(steps.preemption_count(), 1U);
  EXPECT_EQ(steps.free_block_count(), 2U);
  steps.complete();
  steps.remove(1);
  EXPECT_EQ(steps.next(), (Parts{{2, 0, 9, true}}));  // all of it, its own reply included
}

/// A world of random requests, cancellations and ends; what must hold is checked at every step.
class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : random_(seed) {
    options_ = {.block_tokens = 1 + number(16),
                .block_count = 1 + number(40),
                .step_tokens_most = 1 + number(64),
                .sequences_most = 1 + number(8),
                .length_max = 2 + number(200)};
    steps_.emplace(options_);
  }

  void run() {
    for (int step = 0; step < 300; ++step) {
      if (number(3) == 0) ask();
      if (number(20) == 0 && !known_.empty()) drop(std::next(known_.begin(), number_below(known_)));
      turn();
      if (testing::Test::HasFatalFailure()) return;
    }
    // Nothing new comes: everything ends, in bounded time.
    for (int step = 0; step < 200'000 && !known_.empty(); ++step) {
      turn();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(known_.empty()) << "a sequence starves";
    ASSERT_EQ(steps_->free_block_count(), options_.block_count) << "a block is lost";
  }

 private:
  struct Known {
    std::uint32_t tokens = 0;
    std::uint32_t computed = 0;
  };
  using Sequences = std::map<SequenceId, Known>;

  std::uint32_t number(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  std::ptrdiff_t number_below(const Sequences& all) {
    return number(static_cast<std::uint32_t>(all.size()));
  }

  void ask() {
    const std::uint32_t tokens = 1 + number(options_.length_max);
    const SequenceId id = next_++;
    if (steps_->add(id, tokens, 1 + number(40))) known_[id] = {.tokens = tokens};
  }

  void drop(Sequences::iterator at) {
    steps_->remove(at->first);
    known_.erase(at);
  }

  void turn() {
    const auto parts = steps_->next();
    ASSERT_EQ(parts.empty(), known_.empty()) << "nothing is computed though there is something";
    check(parts);
    steps_->complete();
    for (const auto& part : parts) {
      auto& known = known_.at(part.sequence);
      known.computed = part.begin + part.count;
      if (!part.wants_logits) continue;
      ++known.tokens;
      if (!steps_->append(part.sequence) || number(30) == 0) drop(known_.find(part.sequence));
    }
  }

  void check(const Parts& parts) {
    std::uint32_t tokens = 0;
    std::set<SequenceId> seen;
    std::set<std::uint32_t> blocks;
    std::size_t block_count = 0;
    for (const auto& part : parts) {
      const auto& known = known_.at(part.sequence);
      ASSERT_TRUE(seen.insert(part.sequence).second);
      ASSERT_GT(part.count, 0U);
      // It goes on where it stopped, or from the start after a preemption.
      ASSERT_TRUE(part.begin == known.computed || part.begin == 0);
      ASSERT_LE(part.begin + part.count, known.tokens);
      ASSERT_EQ(part.wants_logits, part.begin + part.count == known.tokens);
      tokens += part.count;
      const auto own = steps_->blocks(part.sequence);
      ASSERT_GE(own.size() * options_.block_tokens, part.begin + part.count);
      blocks.insert(own.begin(), own.end());
      block_count += own.size();
    }
    ASSERT_LE(tokens, options_.step_tokens_most);
    ASSERT_LE(steps_->running_count(), options_.sequences_most);
    ASSERT_EQ(blocks.size(), block_count) << "two sequences share a block";
    for (const auto block : blocks) ASSERT_LT(block, options_.block_count);
  }

  std::mt19937_64 random_;
  StepOptions options_;
  std::optional<StepScheduler> steps_;
  Sequences known_;
  SequenceId next_ = 1;
};

TEST(StepSchedulerTest, InRandomWorldsNoBlockIsLostAndNobodyStarves) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomWorld(seed).run();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace muster
