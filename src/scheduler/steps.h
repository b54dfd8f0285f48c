#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "scheduler/block_cache.h"

namespace muster {

using SequenceId = std::uint64_t;

struct StepOptions {
  std::uint32_t block_tokens = 16;       // positions that a block of the cache holds
  std::uint32_t block_count = 0;         // of the cache
  std::uint32_t step_tokens_most = 512;  // that a step computes
  std::uint32_t sequences_most = 32;     // that have a place in the cache at once
  std::uint32_t length_max = 0;          // positions of a sequence
  /// Rows of logits of a step beside the one for each sequence: ids that it scores, tokens of
  /// drafts.
  std::uint32_t scored_most = 32;
  bool keeps_prefixes = true;  // blocks outlive their sequences, and are shared
};

/// What a sequence is at its start.
struct StepRequest {
  std::vector<std::uint32_t> ids = {};  // the prompt, and behind it what is known of the reply
  std::uint32_t token_limit = 0;        // further tokens; it gets fewer where length_max comes
                                        // first; 0: it ends behind its prompt
  std::uint64_t prefix_scope = 0;       // it shares blocks with sequences of the same scope alone
  std::uint32_t score_from = 0;         // the first id that is scored, and all behind it; 0: none
};

/// What a step computes of one sequence: the tokens [begin, begin + count), counted from the start
/// of its prompt.
struct StepPart {
  SequenceId sequence = 0;
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
  bool wants_logits = false;  // the last of them is the last one known: the next is to be chosen
  /// So many ids are scored: by the logits of the last tokens of the part, before that from which
  /// the next is chosen. Those of a token score the id behind it.
  std::uint32_t score_count = 0;
  /// The last so many of them are not known but drafted. Their logits are wanted, too.
  std::uint32_t draft_count = 0;

  bool operator==(const StepPart&) const = default;
};

/// Decides, step by step, which tokens of which sequences are computed next and which blocks of the
/// cache they get.
///
/// A step takes, until its budget of tokens is used up: the next token of every sequence that
/// generates, oldest first; then prompts that are not all in the cache, in chunks; then new
/// sequences, in the order in which they came, as long as the available blocks hold all of their
/// tokens and one block more, beside what the prompts that are under way still need.
///
/// While prompts are under way, the oldest of them has half of what is left for prompts, so that it
/// ends; the rest goes to those with the fewest tokens left, so that a long prompt does not hold up
/// a short one. A quarter is for new sequences, where some wait. What one does not use, others do.
///
/// When a sequence needs a block and none is available, the youngest sequence that has blocks gives
/// all of its own back and waits at its place in the order; its tokens are computed again later.
/// The oldest is never preempted, and whatever is let in fits alone: so it ends, and so does each
/// after it.
///
/// Blocks that are full and computed are kept (`BlockCache`), where keeps_prefixes says so. A
/// sequence that gets its place begins behind the longest kept beginning of its ids: those tokens
/// are not computed. The last token that is known always is, since the next one is chosen from it.
/// This holds for one that was preempted too. A sequence whose beginning another one is just about
/// to compute lets it do so first, where that spares it most of its own: of several replies to one
/// prompt the first computes it for all.
///
/// A sequence whose ids are scored computes the tokens before them, whoever has computed them
/// already, in chunks of at most scored_most; each id is scored once, whatever is computed again.
///
/// A sequence that generates may have a draft of what comes next. As much of it as budget, rows of
/// logits and free blocks leave room for, when all else has its part, is computed with its next
/// token; nobody is preempted for it, and where a sequence waits it has no further block. What is
/// appended then and equals the draft is in the cache already; behind what does not, its blocks are
/// free again.
///
/// Pure: no clock and no thread. Threads: owned by one.
class StepScheduler {
 public:
  explicit StepScheduler(const StepOptions& options);

  /// Lets a sequence in.
  ///
  /// Errors: InvalidArgument (no token, a prompt that is longer than length_max or, where a reply
  /// is asked for, leaves no room for it); ResourceExhausted (it would not fit the cache alone).
  Status add(SequenceId id, StepRequest request);

  /// It has its place, and of what is known its last token alone is to be computed.
  bool generates(SequenceId id) const {
    const auto& sequence = sequences_.at(id);
    return !sequence.blocks.empty() && sequence.known() - sequence.computed == 1;
  }

  /// What may come behind the ids of a sequence that generates, for the next part that it has.
  void propose(SequenceId id, std::vector<std::uint32_t> draft);

  /// What to compute now; nothing when there is no sequence.
  const std::vector<StepPart>& next();

  /// What is known of a sequence: its prompt and its reply so far.
  std::span<const std::uint32_t> ids(SequenceId id) const { return sequences_.at(id).ids; }

  /// Of its draft, what its part of the step computes, or has computed, and what is appended has
  /// not been compared with yet.
  std::span<const std::uint32_t> draft(SequenceId id) const { return sequences_.at(id).draft; }

  /// The blocks of a sequence, position / block_tokens to block; others may stand there after a
  /// step, with the same contents. Those that other sequences share lie before its part of a step.
  std::span<const std::uint32_t> blocks(SequenceId id) const { return sequences_.at(id).blocks; }

  /// The parts of `next` are computed: their tokens are in the cache, and their drafts.
  void complete();

  /// A token was chosen for a sequence. False when it was the last that it may have.
  bool append(SequenceId id, std::uint32_t token);

  /// It has ended or is not wanted any more, and holds no block. Nothing for an id that is not in.
  void remove(SequenceId id);

  std::size_t sequence_count() const { return sequences_.size(); }
  std::size_t running_count() const { return running_.size(); }
  std::uint64_t preemption_count() const { return preemption_count_; }
  const BlockCache& cache() const { return cache_; }

 private:
  struct Sequence {
    std::uint64_t arrival = 0;
    std::vector<std::uint32_t> ids = {};
    std::uint32_t computed = 0;  // of these in the cache
    std::uint32_t end = 0;       // tokens when it is at its limit
    std::uint64_t scope = 0;
    std::vector<std::uint32_t> blocks = {};
    std::uint32_t kept_count = 0;  // of the blocks, from the first on
    std::uint32_t score_from = 0;  // the next id to be scored; 0: none is. More than computed
    bool can_keep = true;          // false: a block was not kept, and so none behind it is
    std::vector<std::uint32_t> draft = {};

    std::uint32_t known() const { return static_cast<std::uint32_t>(ids.size()); }
  };

  std::uint32_t blocks_for(std::uint32_t token_count) const {
    return (token_count + options_.block_tokens - 1) / options_.block_tokens;
  }
  void schedule_generating(std::uint32_t& budget);
  void schedule_prompts(std::uint32_t& budget);
  void share_out(std::uint32_t& budget);
  void schedule_waiting(std::uint32_t& budget);
  std::uint32_t spare_count() const;
  void schedule_drafts(std::uint32_t budget);
  std::vector<SequenceId> prompts() const;
  void compute_more(SequenceId id, std::uint32_t most, std::uint32_t& budget);
  std::uint32_t promised_count() const;
  const StepPart* planned(SequenceId id) const;
  std::uint32_t chunk(const Sequence& sequence, std::uint32_t computed, std::uint32_t budget) const;
  static std::span<const std::uint32_t> shareable(const Sequence& sequence);
  std::vector<std::uint32_t> kept_beginning(const Sequence& sequence) const;
  bool awaits_another(const Sequence& sequence, std::uint32_t found_count) const;
  bool reserve(SequenceId id, std::uint32_t token_count);
  void preempt(SequenceId id);
  void plan(SequenceId id, std::uint32_t count, std::uint32_t& budget);
  void keep_full_blocks(Sequence& sequence);
  void drop_blocks_behind(Sequence& sequence);
  void release_blocks(Sequence& sequence);

  const StepOptions options_;
  std::map<SequenceId, Sequence> sequences_;
  std::map<std::uint64_t, SequenceId> running_;  // by arrival: has blocks
  std::map<std::uint64_t, SequenceId> waiting_;  // by arrival
  BlockCache cache_;
  std::vector<StepPart> parts_;
  std::uint32_t scores_left_ = 0;  // ids that the step may still score
  std::uint64_t arrival_count_ = 0;
  std::uint64_t preemption_count_ = 0;
};

}  // namespace muster
