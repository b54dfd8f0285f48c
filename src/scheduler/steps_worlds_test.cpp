// The step scheduler in random worlds: requests, cancellations and ends, and a cache whose contents
// are followed token by token. What must hold is checked at every step.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/steps.h"

namespace muster {
namespace {

using Ids = std::vector<std::uint32_t>;

/// What a world asks for.
enum class Trace {
  Mixed,
  EqualBeginnings,
  Choices,
  LongPrompts,
  Bursts,
  NothingKept,
  Scored,
  Drafted
};

constexpr std::uint32_t kTokens = 3;  // different ones: beginnings are equal by chance, too
constexpr std::uint32_t kScopes = 2;
constexpr std::uint32_t kBeginnings = 3;  // of EqualBeginnings

/// Numbers for what a position of the cache holds: its token, and all before it in its scope.
class Histories {
 public:
  using History = std::uint64_t;

  static constexpr History kNone = 0;  // nothing was written there

  static History start(std::uint64_t scope) { return 1 + scope; }
  History next(History before, std::uint32_t token) {
    return known_.emplace(before * kTokens + token, 1 + kScopes + known_.size()).first->second;
  }

 private:
  std::unordered_map<std::uint64_t, History> known_;
};

class World {
 public:
  World(std::uint64_t seed, Trace trace) : random_(seed), trace_(trace) {
    options_ = {.block_tokens = 1 + number(16),
                .block_count = 1 + number(40),
                .step_tokens_most = 1 + number(64),
                .sequences_most = 1 + number(8),
                .length_max = 2 + number(200),
                .scored_most = 1 + number(20),
                .keeps_prefixes = trace != Trace::NothingKept};
    steps_.emplace(options_);
    cells_.resize(std::size_t{options_.block_count} * options_.block_tokens, Histories::kNone);
    for (auto& beginning : beginnings_) beginning = tokens(1 + number(options_.length_max));
  }

  void run() {
    for (int step = 0; step < 300; ++step) {
      for (auto left = arrivals(); left > 0; --left) ask();
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
    ASSERT_EQ(steps_->cache().available_count(), options_.block_count) << "a block is lost";
  }

  std::uint64_t shared_token_count() const { return shared_token_count_; }
  std::uint64_t accepted_count() const { return accepted_count_; }

 private:
  struct Known {
    Ids ids = {};
    std::vector<Histories::History> histories = {};  // of each id
    std::uint64_t scope = 0;
    std::uint32_t computed = 0;
    std::uint32_t room = 0;        // tokens that may follow
    std::uint32_t score_from = 0;  // the next id that is to be scored; 0: none
  };
  using Sequences = std::map<SequenceId, Known>;

  std::uint32_t number(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  std::ptrdiff_t number_below(const Sequences& all) {
    return number(static_cast<std::uint32_t>(all.size()));
  }

  std::uint32_t arrivals() {
    if (trace_ == Trace::Bursts) return number(20) == 0 ? 12 : 0;
    return number(3) == 0 ? 1 : 0;
  }

  Ids tokens(std::uint32_t count) {
    Ids ids(count);
    for (auto& id : ids) id = number(kTokens);
    return ids;
  }

  void push(Known& known, std::uint32_t token) {
    const auto before = known.ids.empty() ? Histories::start(known.scope) : known.histories.back();
    known.ids.push_back(token);
    known.histories.push_back(histories_.next(before, token));
  }

  Ids prompt() {
    const auto length = options_.length_max;
    if (trace_ == Trace::LongPrompts) return tokens(1 + length / 2 + number(length / 2 + 1));
    if (trace_ != Trace::EqualBeginnings) return tokens(1 + number(length));
    auto ids = beginnings_[number(kBeginnings)];
    const auto more = tokens(number(20));
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  }

  void ask() {
    const auto ids = prompt();
    const auto scope = number(kScopes);
    for (auto left = trace_ == Trace::Choices ? 1 + number(6) : 1; left > 0; --left) {
      ask(ids, scope);
    }
  }

  void ask(const Ids& ids, std::uint64_t scope) {
    const SequenceId id = next_++;
    Known known{.scope = scope};
    for (const auto token : ids) push(known, token);
    const auto limit = 1 + number(40);
    const auto size = static_cast<std::uint32_t>(known.ids.size());
    if (trace_ == Trace::Scored && number(2) == 0) known.score_from = number(size);
    const StepRequest request{.ids = known.ids,
                              .token_limit = limit,
                              .prefix_scope = known.scope,
                              .score_from = known.score_from};
    if (!steps_->add(id, request)) return;
    known.room = std::min(limit, options_.length_max - size);
    known_[id] = std::move(known);
  }

  void drop(Sequences::iterator at) {
    steps_->remove(at->first);
    known_.erase(at);
  }

  void turn() {
    if (trace_ == Trace::Drafted) {
      for (const auto& [id, known] : known_) steps_->propose(id, tokens(number(8)));
    }
    const auto parts = steps_->next();
    ASSERT_EQ(parts.empty(), known_.empty()) << "nothing is computed though there is something";
    check(parts);
    if (testing::Test::HasFatalFailure()) return;
    for (const auto& part : parts) write(part);
    for (const auto& part : parts) read(part);
    if (testing::Test::HasFatalFailure()) return;
    steps_->complete();
    for (const auto& part : parts) {
      auto& known = known_.at(part.sequence);
      known.computed = part.begin + part.count - part.draft_count;
      if (known.score_from > 0) known.score_from += part.score_count;
      if (!part.wants_logits) continue;
      ASSERT_TRUE(known.score_from == 0 || known.score_from == known.ids.size()) << "not all";
      known.score_from = 0;
      choose(part);
      if (testing::Test::HasFatalFailure()) return;
    }
    check_cache();
  }

  // A token, and one more behind each that was drafted.
  void choose(const StepPart& part) {
    auto& known = known_.at(part.sequence);
    const auto drafted = steps_->draft(part.sequence);
    const Ids draft(drafted.begin(), drafted.end());
    ASSERT_EQ(draft.size(), part.draft_count);
    for (std::size_t i = 0; i <= draft.size(); ++i) {
      const auto token = number(kTokens);
      push(known, token);
      const bool has_room = --known.room > 0;
      ASSERT_EQ(steps_->append(part.sequence, token), has_room);
      if (!has_room || number(30) == 0) return drop(known_.find(part.sequence));
      if (i == draft.size() || token != draft[i]) return;
      ++known.computed;
      ++accepted_count_;
    }
  }

  void check(const std::vector<StepPart>& parts) {
    std::uint32_t tokens = 0;
    std::uint32_t scores = 0;
    std::set<SequenceId> seen;
    for (const auto& part : parts) {
      const auto& known = known_.at(part.sequence);
      ASSERT_TRUE(seen.insert(part.sequence).second);
      ASSERT_GT(part.count, 0U);
      if (part.begin != known.computed) {
        // It has just got its place, for the first time or after a preemption.
        ASSERT_EQ(part.begin % options_.block_tokens, 0U) << "blocks are shared whole";
        shared_token_count_ += part.begin;
      }
      const auto known_end = part.begin + part.count - part.draft_count;
      ASSERT_LE(known_end, known.ids.size());
      ASSERT_EQ(part.wants_logits, known_end == known.ids.size());
      ASSERT_TRUE(part.draft_count == 0 || known_end - part.begin == 1) << "it generates";
      ASSERT_LT(part.draft_count, known.room + (part.wants_logits ? 0 : 1));
      const auto ids = steps_->ids(part.sequence);
      ASSERT_TRUE(std::equal(ids.begin(), ids.end(), known.ids.begin(), known.ids.end()));
      tokens += part.count;
      scores += part.score_count + part.draft_count;
      ASSERT_TRUE(known.score_from > 0 || part.score_count == 0);
      if (part.score_count > 0) {
        // The next in order: by the last tokens of the part, but for that which chooses.
        const auto end = part.begin + part.count - (part.wants_logits ? 1 : 0);
        ASSERT_EQ(end - part.score_count + 1, known.score_from);
        ASSERT_GE(known.score_from, part.begin + 1);
      }
      const auto blocks = steps_->blocks(part.sequence);
      ASSERT_GE(blocks.size() * options_.block_tokens, part.begin + part.count);
      for (const auto block : blocks) ASSERT_LT(block, options_.block_count);
      // What it writes to is its own.
      for (auto i = part.begin / options_.block_tokens; i < blocks.size(); ++i) {
        ASSERT_EQ(steps_->cache().holder_count(blocks[i]), 1U);
        ASSERT_FALSE(steps_->cache().is_kept(blocks[i]));
      }
    }
    ASSERT_LE(tokens, options_.step_tokens_most);
    ASSERT_LE(scores, options_.scored_most);
    ASSERT_LE(steps_->running_count(), options_.sequences_most);
  }

  std::size_t cell_of(std::span<const std::uint32_t> blocks, std::uint32_t position) const {
    const auto size = options_.block_tokens;
    return std::size_t{blocks[position / size]} * size + position % size;
  }

  // What the engine would: keys of these tokens, which depend on what it finds before them.
  void write(const StepPart& part) {
    const auto& known = known_.at(part.sequence);
    const auto blocks = steps_->blocks(part.sequence);
    auto history =
        part.begin == 0 ? Histories::start(known.scope) : cells_[cell_of(blocks, part.begin - 1)];
    const auto draft = steps_->draft(part.sequence);
    for (auto i = part.begin; i < part.begin + part.count; ++i) {
      const auto size = known.ids.size();
      history = histories_.next(history, i < size ? known.ids[i] : draft[i - size]);
      cells_[cell_of(blocks, i)] = history;
    }
  }

  // All that its tokens attend to is its own, or of an equal beginning in its scope. Looked at when
  // it gets its place, and now and then.
  void read(const StepPart& part) {
    const auto& known = known_.at(part.sequence);
    if (part.begin == known.computed && part.begin > 0 && number(8) > 0) return;
    const auto blocks = steps_->blocks(part.sequence);
    for (std::uint32_t i = 0; i < part.begin + part.count - part.draft_count; ++i) {
      ASSERT_EQ(cells_[cell_of(blocks, i)], known.histories[i])
          << "sequence " << part.sequence << " position " << i;
    }
  }

  void check_cache() {
    const auto& cache = steps_->cache();
    std::vector<std::uint32_t> holders(options_.block_count);
    for (const auto& [id, known] : known_) {
      for (const auto block : steps_->blocks(id)) ++holders[block];
    }
    std::uint32_t nobodys = 0;
    for (std::uint32_t block = 0; block < options_.block_count; ++block) {
      ASSERT_EQ(cache.holder_count(block), holders[block]) << "block " << block;
      if (holders[block] == 0) ++nobodys;
      ASSERT_TRUE(options_.keeps_prefixes || !cache.is_kept(block));
      const auto before = cache.before(block);
      if (!before) continue;
      ASSERT_TRUE(cache.is_kept(*before)) << "what is before a kept block was evicted";
      ASSERT_GE(cache.holder_count(*before), cache.holder_count(block));
    }
    ASSERT_EQ(cache.available_count(), nobodys) << "a block is lost";
  }

  std::mt19937_64 random_;
  const Trace trace_;
  StepOptions options_;
  std::optional<StepScheduler> steps_;
  std::array<Ids, kBeginnings> beginnings_;
  Sequences known_;
  SequenceId next_ = 1;
  Histories histories_;
  std::vector<Histories::History> cells_;  // [blocks x block_tokens]
  std::uint64_t shared_token_count_ = 0;
  std::uint64_t accepted_count_ = 0;
};

class StepWorldsTest : public testing::TestWithParam<std::pair<const char*, Trace>> {};

TEST_P(StepWorldsTest, NoBlockIsLostNobodyStarvesAndOnlyEqualBeginningsAreShared) {
  const auto trace = GetParam().second;
  std::uint64_t shared = 0;
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    World world(seed, trace);
    world.run();
    if (HasFatalFailure()) return;
    shared += world.shared_token_count();
    accepted += world.accepted_count();
  }
  EXPECT_EQ(accepted > 0, trace == Trace::Drafted) << accepted;
  EXPECT_EQ(shared > 0, trace != Trace::NothingKept) << shared;
}

INSTANTIATE_TEST_SUITE_P(All, StepWorldsTest,
                         testing::Values(std::pair{"Mixed", Trace::Mixed},
                                         std::pair{"EqualBeginnings", Trace::EqualBeginnings},
                                         std::pair{"Choices", Trace::Choices},
                                         std::pair{"LongPrompts", Trace::LongPrompts},
                                         std::pair{"Bursts", Trace::Bursts},
                                         std::pair{"NothingKept", Trace::NothingKept},
                                         std::pair{"Scored", Trace::Scored},
                                         std::pair{"Drafted", Trace::Drafted}),
                         [](const auto& trace) { return std::string(trace.param.first); });

}  // namespace
}  // namespace muster
