#include "scheduler/steps.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <utility>
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

// Ids that no other sequence has.
std::vector<std::uint32_t> numbered(SequenceId id, std::uint32_t count) {
  std::vector<std::uint32_t> ids(count);
  std::iota(ids.begin(), ids.end(), static_cast<std::uint32_t>(id) * 1000);
  return ids;
}

Status add(StepScheduler& steps, SequenceId id, std::uint32_t count, std::uint32_t limit) {
  return steps.add(id, {.ids = numbered(id, count), .token_limit = limit});
}

TEST(StepSchedulerTest, APromptIsComputedInChunksAndThenTokenByToken) {
  StepScheduler steps(small());
  ASSERT_TRUE(add(steps, 7, 12, 5));
  EXPECT_EQ(steps.next(), (Parts{{7, 0, 10, false}}));
  EXPECT_EQ(steps.blocks(7).size(), 3U);
  steps.complete();
  EXPECT_EQ(steps.next(), (Parts{{7, 10, 2, true}}));
  steps.complete();
  EXPECT_TRUE(steps.append(7, 7));
  EXPECT_EQ(steps.next(), (Parts{{7, 12, 1, true}}));
  EXPECT_EQ(steps.blocks(7).size(), 4U);
}

TEST(StepSchedulerTest, WhoGeneratesGoesBeforePrompts) {
  StepScheduler steps(small());
  ASSERT_TRUE(add(steps, 1, 3, 9));
  steps.next();
  steps.complete();
  EXPECT_TRUE(steps.append(1, 7));
  ASSERT_TRUE(add(steps, 2, 12, 1));
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 1, true}, {2, 0, 9, false}}));
}

TEST(StepSchedulerTest, TheLimitAndTheModelsLengthEndAReply) {
  StepScheduler steps(small());
  ASSERT_TRUE(add(steps, 1, 3, 2));
  EXPECT_TRUE(steps.append(1, 7));
  EXPECT_FALSE(steps.append(1, 7));
  ASSERT_TRUE(add(steps, 2, 29, 9));  // room for one token in 30
  EXPECT_FALSE(steps.append(2, 7));
}

TEST(StepSchedulerTest, RefusesWhatCouldNeverBeComputed) {
  StepScheduler steps(small());
  EXPECT_EQ(add(steps, 1, 30, 1).error().message,
            "the prompt leaves no room for a reply in the model's 30 tokens: 30");
  EXPECT_EQ(add(steps, 1, 31, 0).error().message,
            "the prompt is longer than the model's 30 tokens: 31");
  EXPECT_EQ(add(steps, 1, 0, 1).error().message, "a prompt must have at least one token");
  auto options = small();
  options.block_count = 2;
  StepScheduler tight(options);
  // 6 + 3 tokens, of which the last is never computed: 8 fit.
  EXPECT_TRUE(add(tight, 1, 6, 3));
  EXPECT_EQ(add(tight, 2, 6, 4).error().message,
            "the cache of 8 tokens does not hold a prompt of 6 with a reply of 4");
  EXPECT_EQ(add(tight, 2, 9, 0).error().message,
            "the cache of 8 tokens does not hold a prompt of 9 with a reply of 0");
}

// As many tokens as the model has positions, in as many blocks as the cache has: all of them are
// computed, and nothing comes behind them.
TEST(StepSchedulerTest, APromptWithoutAReplyMayTakeTheModelsLength) {
  auto options = small();
  options.length_max = 8;
  options.block_count = 2;
  StepScheduler steps(options);
  ASSERT_TRUE(steps.add(1, {.ids = numbered(1, 8), .token_limit = 0, .score_from = 1}));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 8, true, 7}}));
  steps.complete();
  EXPECT_FALSE(steps.append(1, 7));
}

TEST(StepSchedulerTest, WhereBlocksRunOutTheYoungestIsComputedAgainLater) {
  auto options = small();
  options.block_count = 5;
  options.keeps_prefixes = false;
  StepScheduler steps(options);
  ASSERT_TRUE(add(steps, 1, 4, 9));
  ASSERT_TRUE(add(steps, 2, 4, 9));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 4, true}, {2, 0, 4, true}}));
  // Four tokens more each: 1 and 2 have two blocks each then, and one is left.
  for (int i = 0; i < 5; ++i) {
    steps.complete();
    steps.append(1, 7);
    steps.append(2, 7);
    if (i < 4) {
      EXPECT_EQ(steps.next().size(), 2U);
    }
  }
  // Both want a third block; the older gets the last one, the younger gives back its own.
  EXPECT_EQ(steps.next(), (Parts{{1, 8, 1, true}}));
  EXPECT_EQ(steps.preemption_count(), 1U);
  EXPECT_EQ(steps.cache().available_count(), 2U);
  steps.complete();
  steps.remove(1);
  EXPECT_EQ(steps.next(), (Parts{{2, 0, 9, true}}));  // all of it, its own reply included
}

// ---- Prompts beside each other ----

StepOptions long_prompts() {
  return {.block_tokens = 4,
          .block_count = 64,
          .step_tokens_most = 16,
          .sequences_most = 4,
          .length_max = 200};
}

TEST(StepSchedulerTest, AShortPromptDoesNotWaitForALongOne) {
  StepScheduler steps(long_prompts());
  ASSERT_TRUE(add(steps, 1, 100, 9));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 16, false}})) << "alone it has all";
  steps.complete();
  // A quarter of 16 is for what is new, and the one token that it leaves is the long one's.
  ASSERT_TRUE(add(steps, 2, 3, 9));
  EXPECT_EQ(steps.next(), (Parts{{1, 16, 13, false}, {2, 0, 3, true}}));
  steps.complete();
  steps.append(2, 7);
  // Of the 15 behind the token of 2 again a quarter, 3.
  ASSERT_TRUE(add(steps, 3, 12, 9));
  EXPECT_EQ(steps.next(), (Parts{{2, 3, 1, true}, {1, 29, 12, false}, {3, 0, 3, false}}));
  steps.complete();
  steps.append(2, 7);
  // 3 has 9 left, and 1 has 59: half of 15 is the oldest's, all else goes to the shortest.
  EXPECT_EQ(steps.next(), (Parts{{2, 4, 1, true}, {1, 41, 8, false}, {3, 3, 7, false}}));
  steps.complete();
  steps.append(2, 7);
  EXPECT_EQ(steps.next(), (Parts{{2, 5, 1, true}, {1, 49, 13, false}, {3, 10, 2, true}}));
}

// Else each of them would end when the last one does.
TEST(StepSchedulerTest, PromptsOfOneLengthAreComputedOneAfterTheOther) {
  StepScheduler steps(long_prompts());
  ASSERT_TRUE(add(steps, 1, 40, 9));
  ASSERT_TRUE(add(steps, 2, 40, 9));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 16, false}}));
  steps.complete();
  EXPECT_EQ(steps.next(), (Parts{{1, 16, 12, false}, {2, 0, 4, false}}));
  steps.complete();
  EXPECT_EQ(steps.next(), (Parts{{1, 28, 12, true}, {2, 4, 4, false}}));
}

// 1 has 4 blocks and needs 9 more of the 12 that are left: 2 needs 3 and one for its reply.
TEST(StepSchedulerTest, ANewPromptDoesNotTakeTheRoomOfOneThatIsUnderWay) {
  auto options = long_prompts();
  options.block_count = 16;
  StepScheduler steps(options);
  ASSERT_TRUE(add(steps, 1, 50, 9));
  ASSERT_TRUE(add(steps, 2, 12, 9));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 16, false}}));
  steps.complete();
  EXPECT_EQ(steps.next(), (Parts{{1, 16, 16, false}})) << "and what it leaves is not lost";
  // One that needs a block less is let in.
  steps.remove(2);
  steps.complete();
  ASSERT_TRUE(add(steps, 3, 8, 9));
  EXPECT_EQ(steps.next(), (Parts{{1, 32, 12, false}, {3, 0, 4, false}}));
  EXPECT_EQ(steps.preemption_count(), 0U);
}

// ---- Kept beginnings ----

// Computes all of what is known of a sequence and ends it; how much of it was not computed.
std::uint32_t compute_all(StepScheduler& steps, SequenceId id) {
  std::optional<std::uint32_t> begin;
  for (bool is_done = false; !is_done;) {
    for (const auto& part : steps.next()) {
      if (part.sequence != id) continue;
      if (!begin) begin = part.begin;
      is_done = part.wants_logits;
    }
    steps.complete();
  }
  return begin.value_or(0);
}

TEST(StepSchedulerTest, ASequenceBeginsBehindWhatAnEndedOneHasComputed) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(1, {.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .token_limit = 5}));
  EXPECT_EQ(compute_all(steps, 1), 0U);
  steps.append(1, 50);
  EXPECT_EQ(steps.next(), (Parts{{1, 9, 1, true}}));
  steps.complete();
  steps.remove(1);
  EXPECT_EQ(steps.cache().available_count(), 8U);
  // The same nine ids and one that is not the reply's: two blocks of four are shared.
  ASSERT_TRUE(steps.add(2, {.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 60}, .token_limit = 5}));
  EXPECT_EQ(steps.next(), (Parts{{2, 8, 2, true}}));
  EXPECT_EQ(std::vector(steps.blocks(2).begin(), steps.blocks(2).end()),
            (std::vector<std::uint32_t>{0, 1, 2}));
  steps.complete();
  steps.append(2, 61);
  // From within its second block on it differs: that block is computed.
  ASSERT_TRUE(steps.add(3, {.ids = {1, 2, 3, 4, 5, 6, 70, 8, 9}, .token_limit = 5}));
  EXPECT_EQ(steps.next(), (Parts{{2, 10, 1, true}, {3, 4, 5, true}}));
  EXPECT_EQ(steps.blocks(3)[0], 0U);
  EXPECT_EQ(steps.cache().holder_count(0), 2U);
  EXPECT_EQ(steps.cache().holder_count(1), 1U);
}

TEST(StepSchedulerTest, TheReplyIsKeptWithItsPrompt) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(1, {.ids = {1, 2, 3}, .token_limit = 9}));
  EXPECT_EQ(compute_all(steps, 1), 0U);
  for (const std::uint32_t token : {4U, 5U, 6U, 7U, 8U, 9U}) {
    steps.append(1, token);
    steps.next();
    steps.complete();
  }
  steps.remove(1);
  // A conversation goes on: prompt, reply and what is said next.
  ASSERT_TRUE(steps.add(2, {.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, .token_limit = 2}));
  EXPECT_EQ(steps.next(), (Parts{{2, 8, 2, true}}));
}

TEST(StepSchedulerTest, TheLastKnownTokenIsAlwaysComputed) {
  StepScheduler steps(small());
  for (SequenceId id = 1; id <= 2; ++id) {
    ASSERT_TRUE(steps.add(id, {.ids = {1, 2, 3, 4, 5, 6, 7, 8}, .token_limit = 2}));
    EXPECT_EQ(compute_all(steps, id), id == 1 ? 0U : 4U);
    steps.remove(id);
  }
}

TEST(StepSchedulerTest, OnlySequencesOfOneScopeShare) {
  StepScheduler steps(small());
  const std::vector<std::uint32_t> ids{1, 2, 3, 4, 5};
  const std::pair<std::uint64_t, std::uint32_t> asked[] = {{7, 0}, {8, 0}, {0, 0}, {7, 4}, {8, 4}};
  SequenceId id = 1;
  for (const auto& [scope, shared] : asked) {
    ASSERT_TRUE(steps.add(id, {.ids = ids, .token_limit = 2, .prefix_scope = scope}));
    EXPECT_EQ(compute_all(steps, id), shared) << "scope " << scope;
    steps.remove(id++);
  }
}

TEST(StepSchedulerTest, WhereNothingIsToBeKeptAllIsComputedAgain) {
  auto options = small();
  options.keeps_prefixes = false;
  StepScheduler steps(options);
  for (SequenceId id = 1; id <= 2; ++id) {
    ASSERT_TRUE(steps.add(id, {.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .token_limit = 2}));
    EXPECT_EQ(compute_all(steps, id), 0U);
    steps.remove(id);
  }
}

// Both compute the same block in the same step, as it is less than half of the second one; one of
// the two is free again behind it.
TEST(StepSchedulerTest, WhatTwoHaveComputedAtOnceIsHeldOnce) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(1, {.ids = {1, 2, 3, 4, 5}, .token_limit = 5}));
  ASSERT_TRUE(steps.add(2, {.ids = {1, 2, 3, 4, 6, 7, 8, 9, 10}, .token_limit = 5}));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 5, true}, {2, 0, 5, false}}));
  EXPECT_EQ(steps.cache().available_count(), 4U);
  steps.complete();
  EXPECT_EQ(steps.cache().available_count(), 5U);
  EXPECT_EQ(steps.blocks(1)[0], steps.blocks(2)[0]);
  EXPECT_NE(steps.blocks(1)[1], steps.blocks(2)[1]);
}

// Several replies to one prompt: it is computed once, in two steps, and what came behind them is
// not held up.
TEST(StepSchedulerTest, WhatAnotherIsAboutToComputeIsComputedOnce) {
  auto options = small();
  options.step_tokens_most = 8;
  options.sequences_most = 4;
  StepScheduler steps(options);
  const auto prompt = numbered(1, 9);
  for (SequenceId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(steps.add(id, {.ids = prompt, .token_limit = 3}));
  }
  ASSERT_TRUE(add(steps, 4, 2, 3));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 8, false}}));
  steps.complete();
  // Its two blocks are kept now, and each computes its last token.
  EXPECT_EQ(steps.next(),
            (Parts{{1, 8, 1, true}, {2, 8, 1, true}, {3, 8, 1, true}, {4, 0, 2, true}}));
  EXPECT_EQ(steps.cache().holder_count(0), 3U);
  EXPECT_EQ(steps.cache().holder_count(1), 3U);
}

TEST(StepSchedulerTest, WhoAwaitsAnothersBlocksIsOvertaken) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(1, {.ids = numbered(1, 6), .token_limit = 3}));
  ASSERT_TRUE(steps.add(2, {.ids = numbered(1, 6), .token_limit = 3}));
  ASSERT_TRUE(add(steps, 3, 3, 3));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 6, true}, {3, 0, 3, true}}));
  // The one that it waits for is not wanted any more: it computes what there is.
  steps.remove(1);
  steps.complete();
  steps.append(3, 7);
  EXPECT_EQ(steps.next(), (Parts{{3, 3, 1, true}, {2, 0, 6, true}}));
}

TEST(StepSchedulerTest, NobodyAwaitsAnotherScopeOrBlocksThatAreNotKept) {
  for (const bool keeps : {true, false}) {
    auto options = small();
    options.keeps_prefixes = keeps;
    StepScheduler steps(options);
    ASSERT_TRUE(steps.add(1, {.ids = numbered(1, 5), .token_limit = 3}));
    ASSERT_TRUE(steps.add(2, {.ids = numbered(1, 5), .token_limit = 3, .prefix_scope = keeps}));
    EXPECT_EQ(steps.next(), (Parts{{1, 0, 5, true}, {2, 0, 5, true}}));
  }
}

// The older one takes the last of its blocks; what is left of them is not computed again.
TEST(StepSchedulerTest, AfterAPreemptionWhatIsStillThereIsUsed) {
  auto options = small();
  options.block_count = 6;
  StepScheduler steps(options);
  ASSERT_TRUE(steps.add(1, {.ids = {1, 2, 3, 4}, .token_limit = 12}));
  ASSERT_TRUE(steps.add(2, {.ids = {11, 12, 13, 14, 15, 16}, .token_limit = 12}));
  EXPECT_EQ(steps.next().size(), 2U);
  std::uint32_t token = 100;
  while (steps.preemption_count() == 0) {
    steps.complete();
    steps.append(1, token++);
    steps.append(2, token++);
    steps.next();
  }
  // For its thirteenth token 2 wanted a fourth block; its three are full, and 1 has the others.
  EXPECT_EQ(steps.blocks(1).size(), 3U);
  EXPECT_EQ(steps.cache().available_count(), 3U);
  while (steps.blocks(1).size() == 3) {
    steps.complete();
    steps.append(1, token++);
    steps.next();
  }
  steps.complete();
  steps.remove(1);
  EXPECT_EQ(steps.next(), (Parts{{2, 8, 5, true}}));
}

// What is kept is room like any other: a prompt that needs all of it gets it.
TEST(StepSchedulerTest, KeptBlocksStandInNobodysWay) {
  StepScheduler steps(small());
  ASSERT_TRUE(steps.add(1, {.ids = numbered(1, 28), .token_limit = 2}));
  EXPECT_EQ(compute_all(steps, 1), 0U);
  steps.remove(1);
  ASSERT_TRUE(steps.add(2, {.ids = numbered(2, 29), .token_limit = 1}));
  EXPECT_EQ(compute_all(steps, 2), 0U);
  EXPECT_EQ(steps.blocks(2).size(), 8U);
  EXPECT_EQ(steps.preemption_count(), 0U);
}

// ---- Ids that are scored: the logits of a token are those of the id behind it ----

StepOptions scoring() {
  auto options = small();
  options.scored_most = 4;
  return options;
}

TEST(StepSchedulerTest, APromptIsScoredInChunksAndThenContinued) {
  StepScheduler steps(scoring());
  ASSERT_TRUE(steps.add(7, {.ids = numbered(7, 12), .token_limit = 2, .score_from = 1}));
  EXPECT_EQ(steps.next(), (Parts{{7, 0, 4, false, 4}}));  // ids 1 to 4
  steps.complete();
  EXPECT_EQ(steps.next(), (Parts{{7, 4, 4, false, 4}}));  // 5 to 8
  steps.complete();
  EXPECT_EQ(steps.next(), (Parts{{7, 8, 4, true, 3}}));  // 9 to 11, and what comes behind them
  steps.complete();
  EXPECT_TRUE(steps.append(7, 7));
  EXPECT_EQ(steps.next(), (Parts{{7, 12, 1, true, 0}}));
}

TEST(StepSchedulerTest, WhatIsScoredIsComputedThoughItIsKept) {
  StepScheduler steps(scoring());
  ASSERT_TRUE(steps.add(1, {.ids = numbered(1, 9), .token_limit = 1}));
  steps.next();
  steps.complete();
  steps.remove(1);
  ASSERT_TRUE(steps.add(2, {.ids = numbered(1, 9), .token_limit = 1, .score_from = 1}));
  EXPECT_EQ(steps.next(), (Parts{{2, 0, 4, false, 4}}));
  steps.remove(2);
  // As one that goes on elsewhere: 1 to 5 are told, and token 5 scores id 6. One block is before
  // it.
  ASSERT_TRUE(steps.add(3, {.ids = numbered(1, 9), .token_limit = 1, .score_from = 6}));
  EXPECT_EQ(steps.next(), (Parts{{3, 4, 5, true, 3}}));
}

// It would take several steps for what one step computes.
TEST(StepSchedulerTest, NobodyAwaitsTheBlocksOfOneThatIsScored) {
  StepScheduler steps(scoring());
  ASSERT_TRUE(steps.add(1, {.ids = numbered(1, 6), .token_limit = 1, .score_from = 1}));
  ASSERT_TRUE(steps.add(2, {.ids = numbered(1, 6), .token_limit = 1}));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 4, false, 4}, {2, 0, 6, true}}));
}

TEST(StepSchedulerTest, OnePromptIsScoredAtATimeAndNobodyElseWaitsForIt) {
  StepScheduler steps(scoring());
  ASSERT_TRUE(steps.add(1, {.ids = numbered(1, 9), .token_limit = 1, .score_from = 1}));
  ASSERT_TRUE(steps.add(2, {.ids = numbered(2, 7), .token_limit = 1, .score_from = 1}));
  ASSERT_TRUE(steps.add(3, {.ids = numbered(3, 2), .token_limit = 1}));
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 4, false, 4}, {3, 0, 2, true, 0}}));
  steps.complete();
  steps.remove(3);
  EXPECT_EQ(steps.next(), (Parts{{1, 4, 5, true, 4}}));  // 5 to 8: all that are left
  steps.complete();
  steps.remove(1);
  EXPECT_EQ(steps.next(), (Parts{{2, 0, 4, false, 4}}));
}

// ---- Drafts ----

// A scheduler with one sequence of three ids and one of its reply.
StepScheduler generating(const StepOptions& options, std::uint32_t limit) {
  StepScheduler steps(options);
  EXPECT_TRUE(add(steps, 1, 3, limit));
  steps.next();
  steps.complete();
  EXPECT_TRUE(steps.append(1, 7));
  return steps;
}

TEST(StepSchedulerTest, WhatEqualsTheDraftIsInTheCacheAlready) {
  auto steps = generating(small(), 9);
  steps.propose(1, {4, 5, 6});
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 4, true, 0, 3}}));
  EXPECT_EQ(steps.blocks(1).size(), 2U);  // seven positions in blocks of four
  steps.complete();
  EXPECT_TRUE(steps.append(1, 4));
  EXPECT_TRUE(steps.append(1, 5));
  EXPECT_TRUE(steps.append(1, 9));  // the draft has 6 here
  EXPECT_TRUE(steps.draft(1).empty());
  EXPECT_EQ(steps.next(), (Parts{{1, 6, 1, true}})) << "the 9 alone: 4 and 5 are there";
  EXPECT_TRUE(steps.cache().is_kept(steps.blocks(1)[0]));
}

TEST(StepSchedulerTest, ADraftThatWasWrongIsComputedOver) {
  auto steps = generating(small(), 9);
  steps.propose(1, {4, 5});
  steps.next();
  steps.complete();
  EXPECT_TRUE(steps.append(1, 8));
  EXPECT_EQ(steps.next(), (Parts{{1, 4, 1, true}}));
}

TEST(StepSchedulerTest, ADraftIsNoLongerThanWhatMayCome) {
  auto steps = generating(small(), 4);  // three further tokens: the last is never computed
  steps.propose(1, {4, 5, 6, 7});
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 3, true, 0, 2}}));
  steps.complete();
  EXPECT_TRUE(steps.append(1, 4));
  EXPECT_TRUE(steps.append(1, 5));
  EXPECT_FALSE(steps.append(1, 6));
}

TEST(StepSchedulerTest, ADraftTakesWhatBudgetAndRowsOfLogitsAreLeft) {
  auto options = small();
  options.scored_most = 2;
  auto steps = generating(options, 9);
  steps.propose(1, {4, 5, 6});
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 3, true, 0, 2}}));
  auto busy = generating(small(), 9);
  ASSERT_TRUE(add(busy, 2, 8, 5));
  busy.propose(1, {4, 5, 6});
  EXPECT_EQ(busy.next(), (Parts{{1, 3, 2, true, 0, 1}, {2, 0, 8, true}})) << "ten in all";
}

TEST(StepSchedulerTest, ADraftTakesNoBlockThatATokenIsSoonToHave) {
  auto options = small();
  options.block_count = 2;
  auto steps = generating(options, 5);
  steps.propose(1, {4, 5, 6});
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 1, true}})) << "one block is left, for its own next token";
}

// Ten positions take three blocks of four, and the five that are known then take two.
TEST(StepSchedulerTest, BlocksOfADraftThatWasWrongAreFreeAgain) {
  auto steps = generating(small(), 20);
  steps.propose(1, {4, 5, 6, 7, 8, 9});
  steps.next();
  EXPECT_EQ(steps.blocks(1).size(), 3U);
  steps.complete();
  EXPECT_TRUE(steps.append(1, 9));
  EXPECT_EQ(steps.blocks(1).size(), 2U);
  EXPECT_EQ(steps.cache().available_count(), 6U);
}

TEST(StepSchedulerTest, ADraftTakesNoBlockThatASequenceWaitsFor) {
  auto options = small();
  options.sequences_most = 1;
  auto steps = generating(options, 20);
  ASSERT_TRUE(add(steps, 2, 4, 5));
  steps.propose(1, {4, 5, 6});
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 1, true}}));
}

// Six blocks of eight are kept for others to begin behind, one has the prompt, and one is free, for
// the next tokens.
TEST(StepSchedulerTest, ADraftEvictsNothingThatIsKept) {
  auto options = small();
  options.step_tokens_most = 30;
  StepScheduler steps(options);
  ASSERT_TRUE(add(steps, 2, 24, 1));
  steps.next();
  steps.complete();
  steps.remove(2);
  ASSERT_TRUE(add(steps, 1, 3, 20));
  steps.next();
  steps.complete();
  EXPECT_TRUE(steps.append(1, 7));
  steps.propose(1, {4, 5, 6, 7, 8});
  EXPECT_EQ(steps.next(), (Parts{{1, 3, 1, true}}));
  EXPECT_EQ(steps.cache().free_count(), 1U);
}

TEST(StepSchedulerTest, APromptThatIsUnderWayHasNoDraft) {
  StepScheduler steps(small());
  ASSERT_TRUE(add(steps, 1, 12, 9));
  steps.propose(1, {4});
  EXPECT_EQ(steps.next(), (Parts{{1, 0, 10, false}}));
  steps.complete();
  steps.propose(1, {4});
  EXPECT_EQ(steps.next(), (Parts{{1, 10, 2, true}}));
}

}  // namespace
}  // namespace muster
