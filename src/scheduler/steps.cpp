// Steps of a decoder: which tokens are computed together, and who has which blocks of the cache.

#include "scheduler/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

namespace muster {

StepScheduler::StepScheduler(const StepOptions& options)
    : options_(options),
      cache_({.block_tokens = options.block_tokens, .block_count = options.block_count}) {}

Status StepScheduler::add(SequenceId id, StepRequest request) {
  const auto token_count = static_cast<std::uint32_t>(request.ids.size());
  if (token_count == 0) {
    return Error{ErrorKind::InvalidArgument, "a prompt must have at least one token"};
  }
  if (token_count > options_.length_max) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the prompt is longer than the model's {} tokens: {}",
                             options_.length_max, token_count)};
  }
  const std::uint32_t room = options_.length_max - token_count;
  if (room == 0 && request.token_limit > 0) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("the prompt leaves no room for a reply in the model's {} tokens: {}",
                             options_.length_max, token_count)};
  }
  const std::uint32_t reply = std::min(request.token_limit, room);
  // The last token is chosen and never computed; one that has no reply ends where it would be.
  const std::uint32_t end = token_count + std::max(1U, reply);
  if (blocks_for(end - 1) > options_.block_count) {
    return Error{
        ErrorKind::ResourceExhausted,
        fmt::format("the cache of {} tokens does not hold a prompt of {} with a reply of {}",
                    std::uint64_t{options_.block_count} * options_.block_tokens, token_count,
                    reply)};
  }
  MUSTER_CHECK(sequences_.count(id) == 0 && request.score_from < token_count);
  const auto arrival = arrival_count_++;
  sequences_[id] = {.arrival = arrival,
                    .ids = std::move(request.ids),
                    .end = end,
                    .scope = request.prefix_scope,
                    .score_from = request.score_from,
                    .can_keep = options_.keeps_prefixes};
  waiting_[arrival] = id;
  return Done{};
}

const std::vector<StepPart>& StepScheduler::next() {
  parts_.clear();
  scores_left_ = options_.scored_most;
  std::uint32_t budget = options_.step_tokens_most;
  schedule_generating(budget);
  schedule_prompts(budget);
  schedule_waiting(budget);
  share_out(budget);  // what those that wait have left
  schedule_drafts(budget);
  return parts_;
}

void StepScheduler::propose(SequenceId id, std::vector<std::uint32_t> draft) {
  sequences_.at(id).draft = generates(id) ? std::move(draft) : std::vector<std::uint32_t>();
}

// A guess must not have a block that a token is soon to have, that a sequence waits for, or that
// others may still find their beginning in.
std::uint32_t StepScheduler::spare_count() const {
  if (!waiting_.empty()) return 0;
  const std::uint32_t reserved = promised_count() + static_cast<std::uint32_t>(running_.size());
  return cache_.free_count() - std::min(cache_.free_count(), reserved);
}

void StepScheduler::schedule_drafts(std::uint32_t budget) {
  const bool has_drafts = std::any_of(parts_.begin(), parts_.end(), [this](const StepPart& part) {
    return !sequences_.at(part.sequence).draft.empty();
  });
  if (!has_drafts) return;
  std::uint32_t spare = spare_count();
  for (auto& part : parts_) {
    auto& sequence = sequences_.at(part.sequence);
    if (sequence.draft.empty()) continue;
    const auto size = options_.block_tokens;
    const auto held = static_cast<std::uint32_t>(sequence.blocks.size());
    const std::uint32_t places = (held + spare) * size - sequence.known();
    // The last token that it may have is chosen and never computed.
    const auto count = std::min({static_cast<std::uint32_t>(sequence.draft.size()), budget,
                                 scores_left_, places, sequence.end - 1 - sequence.known()});
    sequence.draft.resize(count);
    const std::uint32_t needed = std::max(held, blocks_for(sequence.known() + count)) - held;
    for (std::uint32_t i = 0; i < needed; ++i) sequence.blocks.push_back(cache_.take());
    part.count += count;
    part.draft_count = count;
    spare -= needed;
    budget -= count;
    scores_left_ -= count;
  }
}

const StepPart* StepScheduler::planned(SequenceId id) const {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [id](const StepPart& part) { return part.sequence == id; });
  return found == parts_.end() ? nullptr : &*found;
}

// A sequence that is preempted on the way is in `running_` no longer. None that is planned is
// preempted here, as only older ones could want to, and they were planned before.
void StepScheduler::schedule_generating(std::uint32_t& budget) {
  std::uint64_t from = 0;
  while (budget > 0) {
    const auto found = running_.lower_bound(from);
    if (found == running_.end()) return;
    from = found->first + 1;
    const auto& sequence = sequences_.at(found->second);
    if (sequence.known() - sequence.computed == 1) compute_more(found->second, 1, budget);
  }
}

// The running sequences that need more than their next token, oldest first.
std::vector<SequenceId> StepScheduler::prompts() const {
  std::vector<SequenceId> all;
  for (const auto& [arrival, id] : running_) {
    const auto& sequence = sequences_.at(id);
    if (sequence.known() - sequence.computed > 1) all.push_back(id);
  }
  return all;
}

// An older prompt may take the blocks of a younger sequence that is planned already: that one is
// not computed in this step then, and its tokens of the budget are nobody's.
void StepScheduler::schedule_prompts(std::uint32_t& budget) {
  constexpr std::uint32_t kShareOfNew = 4;
  const auto all = prompts();
  if (all.empty()) return;
  const std::uint32_t for_new = waiting_.empty() ? 0 : budget / kShareOfNew;
  budget -= for_new;
  compute_more(all.front(), all.size() == 1 ? budget : budget - budget / 2, budget);
  share_out(budget);
  budget += for_new;
}

// To the prompts with the fewest tokens left first. Prompts of one length are computed one after
// the other so, as the one that was begun first has the fewest.
void StepScheduler::share_out(std::uint32_t& budget) {
  auto order = prompts();
  const auto left = [this](SequenceId id) {
    const auto& sequence = sequences_.at(id);
    return sequence.known() - sequence.computed;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](SequenceId a, SequenceId b) { return left(a) < left(b); });
  for (const auto id : order) {
    const bool is_preempted = running_.count(sequences_.at(id).arrival) == 0;
    if (!is_preempted) compute_more(id, budget, budget);
  }
}

// Behind what the step computes of it already. One that is scored gets one part of a step: its
// scores bound that, not the budget.
void StepScheduler::compute_more(SequenceId id, std::uint32_t most, std::uint32_t& budget) {
  const auto& sequence = sequences_.at(id);
  const auto* const part = planned(id);
  if (part != nullptr && sequence.score_from > 0) return;
  const std::uint32_t computed = sequence.computed + (part == nullptr ? 0 : part->count);
  const std::uint32_t count = chunk(sequence, computed, most);
  if (count == 0) return;  // all is planned, or others score all that a step can
  if (reserve(id, computed + count)) plan(id, count, budget);
}

// Tokens of its next part. Where ids are scored, those before the first of them, and as many behind
// that as can be scored; the last one known, from which the next is chosen, scores none.
std::uint32_t StepScheduler::chunk(const Sequence& sequence, std::uint32_t computed,
                                   std::uint32_t budget) const {
  const std::uint32_t count = std::min(sequence.known() - computed, budget);
  if (sequence.score_from == 0 || sequence.known() - sequence.score_from <= scores_left_) {
    return count;
  }
  return std::min(count, sequence.score_from - 1 + scores_left_ - computed);
}

// Whoever waits for another's blocks is overtaken, but only while that one computes them; whoever
// waits for room is not.
void StepScheduler::schedule_waiting(std::uint32_t& budget) {
  std::uint64_t from = 0;
  while (budget > 0 && running_.size() < options_.sequences_most) {
    const auto first = waiting_.lower_bound(from);
    if (first == waiting_.end()) return;
    const auto [arrival, id] = *first;
    from = arrival + 1;
    auto& sequence = sequences_.at(id);
    auto found = kept_beginning(sequence);
    const auto found_count = static_cast<std::uint32_t>(found.size());
    if (awaits_another(sequence, found_count)) continue;
    const std::uint32_t computed = found_count * options_.block_tokens;
    const std::uint32_t count = chunk(sequence, computed, budget);
    if (count == 0) continue;  // others score all that a step can
    // Of the whole cache at most: a sequence that fits alone must not wait for more than there is.
    const std::uint32_t needed =
        promised_count() + std::min(blocks_for(sequence.known()) + 1, blocks_for(sequence.end - 1));
    // Found blocks that nobody holds are among those available, and are not there for the rest.
    if (cache_.available_count() + found_count - cache_.idle_count(found) < needed) return;
    waiting_.erase(arrival);
    running_[arrival] = id;
    cache_.share(found);
    sequence.blocks = std::move(found);
    sequence.kept_count = found_count;
    sequence.computed = computed;
    MUSTER_CHECK(reserve(id, computed + count));
    plan(id, count, budget);
  }
}

// Blocks that running sequences still need for what is known of them.
std::uint32_t StepScheduler::promised_count() const {
  std::uint32_t count = 0;
  for (const auto& [arrival, id] : running_) {
    const auto& sequence = sequences_.at(id);
    const auto held = static_cast<std::uint32_t>(sequence.blocks.size());
    count += std::max(blocks_for(sequence.known()), held) - held;
  }
  return count;
}

// Without the last token that is known, and those that score the ids behind them: their logits are
// wanted, so they are computed in any case, and never into a block that others read.
std::span<const std::uint32_t> StepScheduler::shareable(const Sequence& sequence) {
  const auto wanted = sequence.score_from > 0 ? sequence.score_from : sequence.known();
  return std::span(sequence.ids).first(wanted - 1);
}

std::vector<std::uint32_t> StepScheduler::kept_beginning(const Sequence& sequence) const {
  if (!options_.keeps_prefixes) return {};
  return cache_.find(sequence.scope, shareable(sequence));
}

// A running sequence is about to compute more than half of what this one would have to. For less it
// does not pay to wait: all that a template begins its prompts with is a block or two.
bool StepScheduler::awaits_another(const Sequence& sequence, std::uint32_t found_count) const {
  const auto size = options_.block_tokens;
  const auto left = sequence.known() - found_count * size;
  const auto shared = shareable(sequence);
  return std::any_of(running_.begin(), running_.end(), [&](const auto& entry) {
    const auto& other = sequences_.at(entry.second);
    if (!other.can_keep || other.scope != sequence.scope) return false;
    if (other.score_from > 0) return false;  // it takes small steps
    const auto end =
        std::mismatch(shared.begin(), shared.end(), other.ids.begin(), other.ids.end()).first;
    const auto common = static_cast<std::uint32_t>(end - shared.begin()) / size;
    if (common <= other.kept_count || common <= found_count) return false;
    return 2 * (common - found_count) * size > left;
  });
}

/// Gives a running sequence the blocks for so many tokens. False when it was preempted itself.
bool StepScheduler::reserve(SequenceId id, std::uint32_t token_count) {
  auto& sequence = sequences_.at(id);
  const std::uint32_t needed = blocks_for(token_count);
  while (sequence.blocks.size() + cache_.available_count() < needed) {
    const SequenceId youngest = running_.rbegin()->second;
    preempt(youngest);
    if (youngest == id) return false;
  }
  while (sequence.blocks.size() < needed) sequence.blocks.push_back(cache_.take());
  return true;
}

void StepScheduler::preempt(SequenceId id) {
  auto& sequence = sequences_.at(id);
  std::erase_if(parts_, [&](const StepPart& part) { return part.sequence == id; });
  release_blocks(sequence);
  running_.erase(sequence.arrival);
  waiting_[sequence.arrival] = id;
  ++preemption_count_;
}

// A part of its own, or more of that which it has in this step.
void StepScheduler::plan(SequenceId id, std::uint32_t count, std::uint32_t& budget) {
  const auto& sequence = sequences_.at(id);
  auto part = std::find_if(parts_.begin(), parts_.end(),
                           [id](const StepPart& one) { return one.sequence == id; });
  if (part == parts_.end()) {
    part = parts_.insert(part, StepPart{.sequence = id, .begin = sequence.computed});
  }
  part->count += count;
  const std::uint32_t end = part->begin + part->count;
  const bool is_last = end == sequence.known();
  // A token scores the id behind it.
  const std::uint32_t scored_end = is_last ? end : end + 1;
  const bool scores = sequence.score_from > 0 && sequence.score_from < scored_end;
  part->wants_logits = is_last;
  part->score_count = scores ? scored_end - sequence.score_from : 0;
  scores_left_ -= part->score_count;
  budget -= count;
}

void StepScheduler::complete() {
  for (const auto& part : parts_) {
    const auto found = sequences_.find(part.sequence);
    if (found == sequences_.end()) continue;
    auto& sequence = found->second;
    sequence.computed = part.begin + part.count - part.draft_count;
    if (part.score_count > 0) sequence.score_from += part.score_count;
    if (sequence.score_from >= sequence.known()) sequence.score_from = 0;
    keep_full_blocks(sequence);
  }
  parts_.clear();
}

// Not before they are computed: a sequence of the same step must not count on them.
void StepScheduler::keep_full_blocks(Sequence& sequence) {
  const auto size = options_.block_tokens;
  while (sequence.can_keep && (sequence.kept_count + 1) * size <= sequence.computed) {
    const auto index = sequence.kept_count;
    auto& block = sequence.blocks[index];
    const auto before = index > 0 ? std::optional(sequence.blocks[index - 1]) : std::nullopt;
    block = cache_.keep(block, sequence.scope, before,
                        std::span(sequence.ids).subspan(std::size_t{index} * size, size));
    sequence.can_keep = cache_.is_kept(block);
    if (sequence.can_keep) ++sequence.kept_count;
  }
}

bool StepScheduler::append(SequenceId id, std::uint32_t token) {
  auto& sequence = sequences_.at(id);
  sequence.ids.push_back(token);
  auto& draft = sequence.draft;
  if (!draft.empty() && draft.front() == token) {
    draft.erase(draft.begin());
    ++sequence.computed;
    keep_full_blocks(sequence);
  } else {
    draft.clear();
    drop_blocks_behind(sequence);
  }
  return sequence.known() < sequence.end;
}

// What only drafts have needed.
void StepScheduler::drop_blocks_behind(Sequence& sequence) {
  const auto needed = std::min<std::size_t>(blocks_for(sequence.known()), sequence.blocks.size());
  cache_.release(std::span(sequence.blocks).subspan(needed));
  sequence.blocks.resize(needed);
}

void StepScheduler::remove(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  release_blocks(found->second);
  running_.erase(found->second.arrival);
  waiting_.erase(found->second.arrival);
  std::erase_if(parts_, [&](const StepPart& part) { return part.sequence == id; });
  sequences_.erase(found);
}

void StepScheduler::release_blocks(Sequence& sequence) {
  cache_.release(sequence.blocks);
  sequence.blocks.clear();
  sequence.computed = sequence.kept_count = 0;
  sequence.draft.clear();
  sequence.can_keep = options_.keeps_prefixes;
}

}  // namespace muster
