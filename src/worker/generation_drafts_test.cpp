// Prompt lookup in a decoder on a CPU: a GPU computes no drafts.

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "worker/generation.h"
#include "worker/generation_fixture.h"

namespace muster {
namespace {

// Prompts that repeat themselves, and replies that do: the tokens and the bits of their logits are
// those without drafts, in company, with a cache that preempts, behind what others have kept, and
// where a stop id or the limit comes within a draft.
TEST(GenerationDraftsTest, DraftsSpareStepsAndChangeNothingElse) {
  auto tight = roomy();
  tight.block_count = 24;
  tight.step_tokens_most = 32;
  tight.scored_most = 12;
  for (const auto [precision, cache] : classes()) {
    TestGeneration crowd(tight, precision, 2, 0, cache, /*drafted_most=*/6);
    std::map<SequenceId, std::vector<GeneratedToken>> whole;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      auto request = request_behind(seed);
      const auto cycle = request.ids;
      for (int i = 0; i < 12; ++i) request.ids.push_back(cycle[40 + i % 3]);
      request.sampling.logit_bias = {{5, 3.0F}, {6, 3.0F}, {7, 3.0F}};  // few ids, which come again
      whole[seed] = computed_whole(request, precision, cache);
      if (seed % 3 == 0) {
        request.stop_ids = {whole[seed][whole[seed].size() / 2].token};
        whole[seed] = computed_whole(request, precision, cache);
      }
      ASSERT_TRUE(crowd.generation->add(seed, request));
    }
    crowd.run();
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      EXPECT_TRUE(has_same_bits(whole[seed], crowd.tokens[seed])) << "seed " << seed;
      EXPECT_EQ(crowd.ends[seed], seed % 3 == 0 ? FinishReason::Stop : FinishReason::Length);
    }
    EXPECT_GT(crowd.generation->preemption_count(), 0U);
    EXPECT_GT(crowd.accepted, 0U);
    EXPECT_GT(crowd.drafted, crowd.accepted) << "some were wrong";
    EXPECT_EQ(crowd.uses.back().held_block_count, 0U);
  }
}

// Each step gives a token, and one more for each that was drafted right.
TEST(GenerationDraftsTest, ADraftThatIsRightTakesOneStep) {
  Generate request{.ids = Reply(20, 5), .token_limit = 8};
  request.sampling.logit_bias = {{5, 100.0F}};  // nothing but fives
  TestGeneration one(roomy(), DecoderPrecision::Fp32, 1, 0, KvCacheDtype::Auto, 3);
  ASSERT_TRUE(one.generation->add(1, request));
  one.run();
  EXPECT_EQ(one.replies[1], Reply(8, 5));
  EXPECT_EQ(one.accepted, one.drafted);
  EXPECT_LT(one.step_count, 8U);
  EXPECT_EQ(one.step_count + one.accepted, 8U);
}

}  // namespace
}  // namespace muster
