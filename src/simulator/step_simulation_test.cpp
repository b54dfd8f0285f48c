// Worlds of replies whose times are known, faults that the checks must find, and random worlds in
// which all must hold.

#include "simulator/step_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/step_checks.h"
#include "simulator/step_traces.h"
#include "simulator/turn_checks.h"

namespace muster {
namespace {

using Ids = std::vector<std::uint32_t>;
using Texts = std::vector<std::string>;

constexpr std::size_t kReplies = 20;  // of a small world
constexpr std::uint32_t kLengthMax = 256;

/// One worker whose steps take 1 s, 0.1 s a token, 0.5 s for logits and 0.01 s a position before.
StepWorld plain_world(std::vector<SimulatedReply> replies) {
  StepWorld world;
  world.steps = {.block_count = 16, .step_tokens_most = 64, .sequences_most = 4, .length_max = 256};
  world.costs = {.fixed = 1, .token = 0.1, .logits = 0.5, .cached_token = 0.01};
  world.replies = std::move(replies);
  return world;
}

Ids numbers(std::uint32_t count) {
  Ids ids(count);
  for (std::uint32_t i = 0; i < count; ++i) ids[i] = i;
  return ids;
}

StepWorld small_world(StepTrace trace, std::uint64_t seed) {
  return step_world(
      {.trace = trace, .seed = seed, .reply_count = kReplies, .length_max = kLengthMax});
}

bool has(const Texts& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

// ---- Times ----

TEST(StepSimulation, AReplyTakesItsSteps) {
  const auto result =
      simulate_steps(plain_world({{.ids = numbers(4), .token_limit = 3, .token_count = 3}}));
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  // The prompt: 1 + 4 x 0.1 + 0.5. A token behind 4 and behind 5 positions: 1.6 + 0.04 and 0.05.
  ASSERT_EQ(result.first_token_seconds.size(), 1U);
  EXPECT_NEAR(result.first_token_seconds[0], 1.9, 1e-6);
  ASSERT_EQ(result.token_seconds.size(), 1U);
  EXPECT_NEAR(result.token_seconds[0], (1.64 + 1.65) / 2, 1e-6);
  ASSERT_EQ(result.end_seconds.size(), 1U);
  EXPECT_NEAR(result.end_seconds[0], 5.19, 1e-6);
  EXPECT_NEAR(result.busy_seconds, 5.19, 1e-6);
  EXPECT_EQ(result.step_count, 3U);
  EXPECT_EQ(result.step_token_count, 6U);
  EXPECT_EQ(result.step_token_room, 3 * 64U);
}

// The token that ends it takes a step, too.
TEST(StepSimulation, AReplyThatEndsByItselfTakesAStepForItsEnd) {
  const auto result =
      simulate_steps(plain_world({{.ids = numbers(4), .token_limit = 9, .token_count = 2}}));
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  ASSERT_EQ(result.end_seconds.size(), 1U);
  EXPECT_NEAR(result.end_seconds[0], 5.19, 1e-6);
}

// Two blocks of 16 of the first prompt are found, and one token is computed behind them.
TEST(StepSimulation, AnEqualPromptBeginsBehindTheBlocksOfTheFirst) {
  const auto result = simulate_steps(plain_world(
      {{.ids = numbers(33)}, {.at = TimePoint{} + std::chrono::seconds(9), .ids = numbers(33)}}));
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  ASSERT_EQ(result.first_token_seconds.size(), 2U);
  EXPECT_NEAR(result.first_token_seconds[0], 1 + 3.3 + 0.5, 1e-6);
  EXPECT_NEAR(result.first_token_seconds[1], 1 + 0.1 + 0.5 + 0.32, 1e-6);
  EXPECT_EQ(result.prompt_token_count, 66U);
  EXPECT_EQ(result.cached_token_count, 32U);
}

// It is taken out of the worker behind the step that runs then, which ends at 1.9 s.
TEST(StepSimulation, AClientThatGoesAwayEndsItsReplyWithTheStep) {
  const auto result =
      simulate_steps(plain_world({{.ids = numbers(4),
                                   .token_limit = 9,
                                   .token_count = 9,
                                   .leaves = TimePoint{} + std::chrono::seconds(1)}}));
  EXPECT_TRUE(result.violations.empty()) << result.violations.front();
  EXPECT_EQ(result.cancelled_count, 1U);
  EXPECT_TRUE(result.end_seconds.empty());
  EXPECT_EQ(result.step_count, 1U);
  EXPECT_NEAR(result.span_seconds, 1.9, 1e-6);
}

// ---- Faults that must be found ----

/// A sequence that nobody has asked for takes two blocks and never gives them back.
class LosingStepPlanner final : public ServingStepPlanner {
 public:
  using ServingStepPlanner::ServingStepPlanner;

  Status add(SequenceId id, StepRequest request) override {
    if (!std::exchange(has_lost_, true)) {
      EXPECT_TRUE(ServingStepPlanner::add(kNobody, {.ids = numbers(20), .token_limit = 1}));
    }
    return ServingStepPlanner::add(id, std::move(request));
  }
  const std::vector<StepPart>& next() override {
    shown_ = ServingStepPlanner::next();
    std::erase_if(shown_, [](const StepPart& part) { return part.sequence == kNobody; });
    return shown_;
  }

 private:
  static constexpr SequenceId kNobody = 1U << 30;

  bool has_lost_ = false;
  std::vector<StepPart> shown_;
};

/// The third sequence is put behind all others whenever it would get its place.
class StarvingStepPlanner final : public ServingStepPlanner {
 public:
  using ServingStepPlanner::ServingStepPlanner;

  Status add(SequenceId id, StepRequest request) override {
    if (++count_ == 3) {
      victim_ = id;
      asked_ = request;
    }
    return ServingStepPlanner::add(id, std::move(request));
  }
  const std::vector<StepPart>& next() override {
    const auto& parts = ServingStepPlanner::next();
    const bool is_due = std::any_of(parts.begin(), parts.end(),
                                    [&](const StepPart& part) { return part.sequence == victim_; });
    if (!is_due) return parts;
    ServingStepPlanner::remove(*victim_);  // and out of the parts
    EXPECT_TRUE(ServingStepPlanner::add(*victim_, asked_));
    return parts;
  }
  void remove(SequenceId id) override {
    if (victim_ == id) victim_.reset();
    ServingStepPlanner::remove(id);
  }

 private:
  std::size_t count_ = 0;
  std::optional<SequenceId> victim_;
  StepRequest asked_;
};

/// One after the other: nobody overtakes and all come to their end, but those behind the first wait
/// for far longer than the cache makes them.
class LonelyStepPlanner final : public ServingStepPlanner {
 public:
  explicit LonelyStepPlanner(const StepOptions& options) : ServingStepPlanner(alone(options)) {}

 private:
  static StepOptions alone(StepOptions options) {
    options.sequences_most = 1;
    return options;
  }
};

/// Every seventh step is computed for nothing.
class ForgettingStepPlanner final : public ServingStepPlanner {
 public:
  using ServingStepPlanner::ServingStepPlanner;

  void complete() override {
    if (++count_ % 7 != 0) ServingStepPlanner::complete();
  }

 private:
  std::size_t count_ = 0;
};

template <typename Planner>
Texts violations(std::uint64_t seed) {
  auto world = small_world(StepTrace::Bursty, seed);
  world.make_planner = [](const StepOptions& options) {
    return std::make_unique<Planner>(options);
  };
  return simulate_steps(world).violations;
}

TEST(StepSimulation, ALostBlockIsFound) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_TRUE(has(violations<LosingStepPlanner>(seed), " is lost: ")) << "seed " << seed;
  }
}

// Whoever came third may leave, or come when nobody comes later.
TEST(StepSimulation, OneThatStarvesIsFound) {
  std::size_t overtaken_count = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto found = violations<StarvingStepPlanner>(seed);
    if (has(found, "came later and has its place first")) ++overtaken_count;
  }
  EXPECT_GE(overtaken_count, 5U);
}

TEST(StepSimulation, OneThatWaitsForNoReasonIsFound) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto found = violations<LonelyStepPlanner>(seed);
    EXPECT_TRUE(has(found, " are enough")) << "seed " << seed;
    EXPECT_FALSE(has(found, "has its place first")) << "seed " << seed;
  }
}

TEST(StepSimulation, AForgottenStepIsFound) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_FALSE(violations<ForgettingStepPlanner>(seed).empty()) << "seed " << seed;
  }
}

// The checks think that 2 came first, and that 3 ends with its second token: with the 3 ids of its
// prompt, of which a step takes 8, 2 x 1 + 3 / 8 steps. The scheduler, which has one place, goes on
// with 3.
TEST(StepChecks, AWaitThatIsLongerThanAllOthersTakeIsFound) {
  const StepOptions options{
      .block_count = 4, .step_tokens_most = 8, .sequences_most = 1, .length_max = 64};
  const StepRequest asked{.ids = {1, 2, 3}, .token_limit = 5};
  StepScheduler steps(options);
  ASSERT_TRUE(steps.add(3, asked));
  ASSERT_TRUE(steps.add(2, asked));
  Texts told;
  StepChecks checks(options, [&](const std::string& what) { told.push_back(what); });
  checks.on_added(2, asked, 5);
  checks.on_added(3, asked, 2);
  for (int step = 1; step <= 3; ++step) {
    EXPECT_FALSE(has(told, "are enough")) << "step " << step;
    const auto parts = steps.next();
    checks.on_planned(steps, parts);
    steps.complete();
    checks.on_completed(steps, parts);
    checks.on_chosen(3, 7U);
    ASSERT_TRUE(steps.append(3, 7));
  }
  EXPECT_TRUE(has(told, "sequence 2 starves: it has waited for 3 steps, and 2.4 are enough"));
}

// Of another flow's tokens 10 may overtake, as many as the longest stream has.
TEST(TurnChecks, AFlowThatIsOvertakenTooOftenIsFound) {
  Texts told;
  TurnChecks checks(10, [&](const std::string& what) { told.push_back(what); });
  checks.on_submitted(1, 1, 10);
  checks.on_submitted(2, 2, 10);
  checks.on_submitted(3, 2, 1);
  checks.on_given(2);
  EXPECT_TRUE(told.empty());
  checks.on_given(3);
  EXPECT_TRUE(has(told, "stream 1 starves: 11 tokens")) << told.size();
}

TEST(TurnChecks, AFlowWhoseOrderIsNotKeptIsFound) {
  Texts told;
  TurnChecks checks(10, [&](const std::string& what) { told.push_back(what); });
  checks.on_submitted(1, 1, 10);
  checks.on_submitted(2, 1, 10);
  checks.on_given(2);
  checks.on_given(1);
  EXPECT_EQ(told, Texts{"stream 1 is given away behind 2"});
}

// ---- Random worlds ----

TEST(StepSimulation, TheSameSeedGivesTheSameResult) {
  const auto once = simulate_steps(small_world(StepTrace::Mixed, 7));
  const auto again = simulate_steps(small_world(StepTrace::Mixed, 7));
  EXPECT_FALSE(once.end_seconds.empty());
  EXPECT_EQ(once.first_token_seconds, again.first_token_seconds);
  EXPECT_EQ(once.end_seconds, again.end_seconds);
  EXPECT_EQ(once.step_count, again.step_count);
}

TEST(StepSimulation, InRandomWorldsAllHolds) {
  std::uint64_t cached = 0;
  std::uint64_t preempted = 0;
  std::uint64_t cancelled = 0;
  double waited = 0;
  for (const auto trace : all_step_traces()) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const auto result = simulate_steps(small_world(trace, seed));
      ASSERT_TRUE(result.violations.empty())
          << step_trace_name(trace) << " seed " << seed << ": " << result.violations[0];
      EXPECT_LE(result.wait_share_most, 1);
      waited = std::max(waited, result.wait_share_most);
      cached += result.cached_token_count;
      preempted += result.preemption_count;
      cancelled += result.cancelled_count;
    }
  }
  EXPECT_GT(cached, 1000U);  // something did happen
  EXPECT_GT(preempted, 0U);
  EXPECT_GT(cancelled, 0U);
  EXPECT_GT(waited, 0.2);  // a bound that is far away would show nothing
}

// Bursts of more than a worker has places and than may wait.
TEST(StepSimulation, ABurstIsRefusedWhereTooManyWait) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto result = simulate_steps(step_world(
        {.trace = StepTrace::Bursty, .seed = seed, .reply_count = 200, .length_max = 64}));
    ASSERT_TRUE(result.violations.empty()) << "seed " << seed << ": " << result.violations[0];
    refused += result.refused_count;
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace muster
