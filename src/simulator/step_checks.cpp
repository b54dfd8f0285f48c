// What must hold of every step of a worker, from what can be seen of it: parts, blocks and counts.
// Nothing here asks the scheduler why.

#include "simulator/step_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

// Of a prompt that is the oldest: all other places generate, a quarter is kept for new sequences,
// and it has half of the rest. Source: scheduler/steps.h.
std::uint32_t share_of_oldest(const StepOptions& options) {
  MUSTER_CHECK(options.step_tokens_most >= options.sequences_most && options.sequences_most > 0);
  const std::uint32_t left = options.step_tokens_most - (options.sequences_most - 1);
  const std::uint32_t of_prompts = left - left / 4;
  return of_prompts - of_prompts / 2;
}

}  // namespace

StepChecks::StepChecks(const StepOptions& options, Violated violated)
    : options_(options),
      violated_(std::move(violated)),
      share_(share_of_oldest(options)),
      cells_(std::size_t{options.block_count} * options.block_tokens) {}

// Two that differ are equal by chance so rarely that no world meets it. Source of the factor and
// the shift: SplitMix64, simulator/random.h.
StepChecks::History StepChecks::after(History before, std::uint32_t token) {
  const auto mixed = (before ^ (token + 1U)) * 0xbf58476d1ce4e5b9;
  return mixed ^ (mixed >> 31);
}

void StepChecks::on_added(SequenceId id, const StepRequest& request, std::uint32_t choice_count) {
  auto& sequence = sequences_[id];
  sequence.arrival = arrival_count_++;
  sequence.start = (request.prefix_scope + 1) * 0x9e3779b97f4a7c15;
  auto history = sequence.start;
  for (const auto token : request.ids) {
    history = after(history, token);
    sequence.histories.push_back(history);
  }
  sequence.choices_left = choice_count;
  order_[sequence.arrival] = id;
}

void StepChecks::on_chosen(SequenceId id, std::optional<std::uint32_t> token) {
  auto& sequence = sequences_.at(id);
  if (sequence.choices_left == 0) {
    return violated_(fmt::format("sequence {} goes on behind its end", id));
  }
  --sequence.choices_left;
  if (token) sequence.histories.push_back(after(sequence.histories.back(), *token));
}

void StepChecks::on_removed(SequenceId id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  waits_.erase(id);
  order_.erase(found->second.arrival);
  sequences_.erase(found);
}

void StepChecks::on_planned(const StepScheduler& state, const std::vector<StepPart>& parts) {
  if (parts.empty() && !sequences_.empty()) {
    violated_(fmt::format("{} sequences starve: nothing is computed", sequences_.size()));
  }
  const auto planned = check_parts(state, parts);
  for (const auto& [id, part] : planned) write(state, *part);
  check_oldest(planned);
  const auto places = update_places(state, planned);
  check_order(places.let_in);
  check_waits(places);
}

// ---- What a step computes ----

// Those that can be looked at further.
StepChecks::Planned StepChecks::check_parts(const StepScheduler& state,
                                            const std::vector<StepPart>& parts) {
  Planned planned;
  std::uint64_t token_count = 0;
  for (const auto& part : parts) {
    token_count += part.count;
    if (!check_part(state, part)) continue;
    if (!planned.emplace(part.sequence, &part).second) {
      violated_(fmt::format("sequence {} is computed twice in a step", part.sequence));
    }
  }
  if (token_count > options_.step_tokens_most) {
    violated_(fmt::format("a step computes {} tokens and may compute {}", token_count,
                          options_.step_tokens_most));
  }
  if (state.running_count() > options_.sequences_most) {
    violated_(fmt::format("{} sequences have a place and {} may", state.running_count(),
                          options_.sequences_most));
  }
  return planned;
}

// True where it is one of a sequence that is there, with blocks for its tokens.
bool StepChecks::check_part(const StepScheduler& state, const StepPart& part) {
  const auto found = sequences_.find(part.sequence);
  if (found == sequences_.end()) {
    violated_(fmt::format("sequence {} is computed and is not there", part.sequence));
    return false;
  }
  const auto& sequence = found->second;
  const std::uint64_t end = std::uint64_t{part.begin} + part.count;
  const auto blocks = state.blocks(part.sequence);
  const bool has_blocks = std::uint64_t{blocks.size()} * options_.block_tokens >= end;
  if (part.count == 0 || end > sequence.known() || !has_blocks ||
      state.ids(part.sequence).size() != sequence.known()) {
    violated_(fmt::format("sequence {} of {} tokens computes [{}, {}) in {} blocks", part.sequence,
                          sequence.known(), part.begin, end, blocks.size()));
    return false;
  }
  for (const auto block : blocks) {
    if (block < options_.block_count) continue;
    violated_(
        fmt::format("sequence {} has block {} of {}", part.sequence, block, options_.block_count));
    return false;
  }
  if (part.wants_logits != (end == sequence.known())) {
    violated_(fmt::format("sequence {} has logits at the wrong time", part.sequence));
  }
  check_beginning(state, part);
  return true;
}

// One that has just got its place, for the first time or again, finds what others have computed,
// in whole blocks, and one that has gone on goes on where it was.
void StepChecks::check_beginning(const StepScheduler& state, const StepPart& part) {
  const auto& sequence = sequences_.at(part.sequence);
  const auto size = options_.block_tokens;
  const auto blocks = state.blocks(part.sequence);
  for (std::size_t i = part.begin / size; i < blocks.size(); ++i) {
    if (state.cache().holder_count(blocks[i]) == 1) continue;
    violated_(fmt::format("sequence {} writes to block {}, which {} hold", part.sequence, blocks[i],
                          state.cache().holder_count(blocks[i])));
  }
  if (sequence.has_place && part.begin == sequence.computed) return;
  if (part.begin % size != 0) {
    return violated_(
        fmt::format("sequence {} begins at {}, within a block", part.sequence, part.begin));
  }
  for (std::uint32_t i = 0; i < part.begin; ++i) {
    if (cells_[cell(blocks[i / size], i)] == sequence.histories[i]) continue;
    return violated_(fmt::format("sequence {} begins at {}, and position {} holds something else",
                                 part.sequence, part.begin, i));
  }
}

void StepChecks::write(const StepScheduler& state, const StepPart& part) {
  const auto& sequence = sequences_.at(part.sequence);
  const auto blocks = state.blocks(part.sequence);
  for (std::uint32_t i = part.begin; i < part.begin + part.count; ++i) {
    cells_[cell(blocks[i / options_.block_tokens], i)] = sequence.histories[i];
  }
}

// ---- Who gets a place, and who starves ----

// As each that is the oldest goes on in every step, each ends, and so does the next one.
void StepChecks::check_oldest(const Planned& planned) {
  const auto found = std::find_if(order_.begin(), order_.end(), [this](const auto& entry) {
    return sequences_.at(entry.second).has_place;
  });
  if (found == order_.end()) return;
  const auto id = found->second;
  const auto& sequence = sequences_.at(id);
  const auto least = std::min(share_, sequence.known() - sequence.computed);
  const auto part = planned.find(id);
  const bool goes_on = part != planned.end() && part->second->begin == sequence.computed;
  const std::uint32_t count = goes_on ? part->second->count : 0;
  if (count >= least) return;
  violated_(fmt::format("sequence {}, the oldest that has a place, gets {} tokens and not {}", id,
                        count, least));
}

// Takes over who has a place now, and from where each goes on. Those that have just got one; one
// that was preempted and let in again in one step has, too.
StepChecks::Places StepChecks::update_places(const StepScheduler& state, const Planned& planned) {
  Places places;
  for (auto& [id, sequence] : sequences_) {
    sequence.had_place = sequence.has_place;
    sequence.has_place = !state.blocks(id).empty();
    if (!sequence.has_place) sequence.computed = 0;
    if (sequence.had_place && !sequence.has_place) places.has_preempted = true;
    const auto part = planned.find(id);
    if (part == planned.end()) continue;
    const bool is_new = !sequence.had_place || part->second->begin != sequence.computed;
    sequence.computed = part->second->begin;
    if (!is_new || !sequence.has_place) continue;
    places.let_in.push_back(id);
    if (sequence.had_place) places.has_preempted = true;
  }
  return places;
}

void StepChecks::check_order(const std::vector<SequenceId>& let_in) {
  if (let_in.empty()) return;
  const auto by_arrival = [this](SequenceId a, SequenceId b) {
    return sequences_.at(a).arrival < sequences_.at(b).arrival;
  };
  const auto last = *std::max_element(let_in.begin(), let_in.end(), by_arrival);
  for (const auto& [arrival, id] : order_) {
    if (arrival >= sequences_.at(last).arrival) return;
    const auto& sequence = sequences_.at(id);
    if (sequence.has_place || may_be_overtaken(sequence)) continue;
    violated_(fmt::format("sequence {} starves: {} came later and has its place first", id, last));
  }
}

// One with a place has a block more in common with it than it has computed: it is about to.
bool StepChecks::may_be_overtaken(const Sequence& sequence) const {
  if (!options_.keeps_prefixes) return false;
  const auto size = options_.block_tokens;
  return std::any_of(sequences_.begin(), sequences_.end(), [&](const auto& entry) {
    const auto& other = entry.second;
    if (&other == &sequence || (!other.has_place && !other.had_place)) return false;
    const auto end = (other.computed / size + 1) * size;
    return end < sequence.known() && end <= other.known() &&
           sequence.histories[end - 1] == other.histories[end - 1];
  });
}

// A step that preempts may leave tokens to nobody, and is free; one that comes later and has its
// place first has more to be done before. A step in which a sequence may be overtaken is another's.
void StepChecks::check_waits(const Places& places) {
  constexpr double kRounding = 1e-6;
  std::uint64_t newest = 0;
  for (const auto id : places.let_in) newest = std::max(newest, sequences_.at(id).arrival + 1);
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.has_place) {
      waits_.erase(id);
      continue;
    }
    const auto [found, is_new] = waits_.try_emplace(id);
    auto& wait = found->second;
    if (is_new || places.has_preempted || newest > sequence.arrival) {
      const double before = static_cast<double>(wait.waited) + (places.has_preempted ? 1 : 0);
      wait.allowed = std::max(wait.allowed, before + steps_most(sequence));
    }
    if (!may_be_overtaken(sequence)) ++wait.waited;
    const auto waited = static_cast<double>(wait.waited);
    if (waited > wait.allowed + kRounding) {
      violated_(
          fmt::format("sequence {} starves: it has waited for {} steps, and {:.1f} are enough", id,
                      wait.waited, wait.allowed));
    }
    wait_share_most_ = std::max(wait_share_most_, waited / std::max(wait.allowed, 1.0));
  }
}

// Steps until it has its place, at most: simulator/step_simulation.h has the reasons.
double StepChecks::steps_most(const Sequence& waiting) const {
  std::uint32_t wanted = 0;  // blocks of the largest that waits up to here
  for (const auto& [id, sequence] : sequences_) {
    if (sequence.has_place || sequence.arrival > waiting.arrival) continue;
    wanted = std::max(wanted, blocks_for(sequence.known()));
  }
  const double used = options_.block_count - std::min(wanted, options_.block_count);
  const double prompt_tokens = options_.step_tokens_most - (options_.sequences_most - 1);
  double steps = 0;
  for (const auto& [id, sequence] : sequences_) {
    const bool is_before = sequence.has_place || sequence.arrival < waiting.arrival;
    if (!is_before || &sequence == &waiting) continue;
    const auto choices = std::max(sequence.choices_left, 1U);
    const double blocks = blocks_for(sequence.known() + choices - 1);
    const double share = blocks < used ? std::max(blocks / used, 1.0 / options_.sequences_most) : 1;
    const std::uint32_t left = sequence.known() - sequence.computed;
    steps += choices * share + (left > 1 ? left / prompt_tokens : 0);
  }
  return steps;
}

// ---- The cache ----

void StepChecks::on_completed(const StepScheduler& state, const std::vector<StepPart>& parts) {
  for (const auto& part : parts) {
    const auto found = sequences_.find(part.sequence);
    if (found != sequences_.end()) found->second.computed = part.begin + part.count;
  }
  check_cache(state);
}

void StepChecks::check_cache(const StepScheduler& state) {
  const auto& cache = state.cache();
  count_holders(state);
  std::uint32_t nobodys = 0;
  for (std::uint32_t block = 0; block < options_.block_count; ++block) {
    if (holders_[block] == 0) ++nobodys;
    if (cache.holder_count(block) == holders_[block]) continue;
    violated_(fmt::format("block {} is lost: {} sequences have it, and {} are counted", block,
                          holders_[block], cache.holder_count(block)));
  }
  if (cache.available_count() == nobodys) return;
  violated_(fmt::format("blocks are lost: nobody has {}, and {} are available", nobodys,
                        cache.available_count()));
}

void StepChecks::count_holders(const StepScheduler& state) {
  holders_.assign(options_.block_count, 0);
  first_holder_.assign(options_.block_count, {});
  for (const auto& [id, sequence] : sequences_) {
    const auto blocks = state.blocks(id);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i] >= options_.block_count) continue;  // that is told where it is planned
      auto& first = first_holder_[blocks[i]];
      if (holders_[blocks[i]]++ == 0) {
        first = {.sequence = &sequence, .index = i};
      } else if (!may_share(first, sequence, i)) {
        violated_(fmt::format("block {} is shared by sequences that differ, {} is one of them",
                              blocks[i], id));
      }
    }
  }
}

// Both have computed it, at the same place, and all up to its end is equal.
bool StepChecks::may_share(const Holder& holder, const Sequence& sequence,
                           std::size_t index) const {
  const std::size_t end = (index + 1) * options_.block_tokens;
  const auto& other = *holder.sequence;
  return holder.index == index && end <= other.computed && end <= sequence.computed &&
         other.histories[end - 1] == sequence.histories[end - 1];
}

void StepChecks::on_end(const StepScheduler& state) {
  if (!sequences_.empty()) {
    violated_(fmt::format("{} sequences are left at the end", sequences_.size()));
  }
  check_cache(state);
}

}  // namespace muster
