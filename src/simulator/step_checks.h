#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/steps.h"

namespace muster {

/// Looks at each step of a worker: what must hold is told with `simulate_steps`. It follows what
/// each position of the cache holds, and counts who holds which block, by itself.
///
/// Threads: owned by one.
class StepChecks {
 public:
  using Violated = std::function<void(const std::string&)>;

  /// violated: told of each thing that does not hold.
  StepChecks(const StepOptions& options, Violated violated);

  /// A sequence came, for which so many times a token will be chosen, an end by itself counted; at
  /// least once.
  void on_added(SequenceId id, const StepRequest& request, std::uint32_t choice_count);

  /// A step is to compute these.
  void on_planned(const StepScheduler& state, const std::vector<StepPart>& parts);

  /// It has.
  void on_completed(const StepScheduler& state, const std::vector<StepPart>& parts);

  /// A token was chosen for a sequence; nullopt: one that ends it.
  void on_chosen(SequenceId id, std::optional<std::uint32_t> token);

  /// It has ended, or is not wanted any more.
  void on_removed(SequenceId id);

  /// All is over.
  void on_end(const StepScheduler& state);

  /// The longest wait of a sequence for its place, as a share of what it may take.
  double wait_share_most() const { return wait_share_most_; }

 private:
  /// What a position holds: its token, and all before it in its scope.
  using History = std::uint64_t;

  struct Sequence {
    std::uint64_t arrival = 0;
    History start = 0;
    std::vector<History> histories = {};  // of each id that is known
    std::uint32_t computed = 0;           // of these, in the cache
    std::uint32_t choices_left = 0;
    bool has_place = false;  // it has blocks
    bool had_place = false;  // before the step that is planned

    std::uint32_t known() const { return static_cast<std::uint32_t>(histories.size()); }
  };
  using Planned = std::map<SequenceId, const StepPart*>;
  /// Of a sequence without a place, in steps.
  struct Wait {
    std::uint64_t waited = 0;
    double allowed = 0;
  };
  /// What a step has changed.
  struct Places {
    std::vector<SequenceId> let_in = {};
    bool has_preempted = false;
  };
  struct Holder {
    const Sequence* sequence = nullptr;
    std::size_t index = 0;  // of the block, among its own
  };

  static History after(History before, std::uint32_t token);
  Planned check_parts(const StepScheduler& state, const std::vector<StepPart>& parts);
  bool check_part(const StepScheduler& state, const StepPart& part);
  void check_beginning(const StepScheduler& state, const StepPart& part);
  void write(const StepScheduler& state, const StepPart& part);
  void check_oldest(const Planned& planned);
  Places update_places(const StepScheduler& state, const Planned& planned);
  void check_order(const std::vector<SequenceId>& let_in);
  bool may_be_overtaken(const Sequence& sequence) const;
  void check_waits(const Places& places);
  double steps_most(const Sequence& waiting) const;
  void check_cache(const StepScheduler& state);
  void count_holders(const StepScheduler& state);
  bool may_share(const Holder& holder, const Sequence& sequence, std::size_t index) const;
  std::uint32_t blocks_for(std::uint32_t token_count) const {
    return (token_count + options_.block_tokens - 1) / options_.block_tokens;
  }
  std::size_t cell(std::uint32_t block, std::uint32_t position) const {
    return std::size_t{block} * options_.block_tokens + position % options_.block_tokens;
  }

  const StepOptions options_;
  const Violated violated_;
  const std::uint32_t share_;  // tokens of its prompt that the oldest gets in a step, at least
  std::map<SequenceId, Sequence> sequences_;
  std::map<std::uint64_t, SequenceId> order_;  // of these, by arrival
  std::uint64_t arrival_count_ = 0;
  std::map<SequenceId, Wait> waits_;
  double wait_share_most_ = 0;
  std::vector<History> cells_;          // [blocks x block_tokens]
  std::vector<std::uint32_t> holders_;  // of each block, counted anew
  std::vector<Holder> first_holder_;
};

}  // namespace muster
