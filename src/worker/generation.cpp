// One decoder's sequences: the scheduler says what a step computes, the engine computes it, the
// sampler chooses.

#include "worker/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

namespace {

// Tokens of a part whose logits are wanted: its last ones.
std::uint32_t logit_count(const StepPart& part) {
  return part.score_count + (part.wants_logits ? 1 : 0) + part.draft_count;
}

// Each sequence has its next token alone, and what is drafted.
bool only_generates(const std::vector<StepPart>& parts) {
  return std::all_of(parts.begin(), parts.end(), [](const StepPart& part) {
    return part.wants_logits && part.count - part.draft_count == 1;
  });
}

}  // namespace

Generation::Generation(engine::Decoder& decoder, const GenerationOptions& options,
                       GenerationEvents events, const Clock& clock)
    : decoder_(decoder),
      drafted_most_(options.drafted_most),
      drafted_of_all_most_(options.steps.scored_most),
      scheduler_(options.steps),
      events_(std::move(events)),
      clock_(clock) {
  // Once and for all, as memory is planned: a list that grows has up to twice its size, and holds
  // the old one meanwhile. What is not written takes no pages.
  const auto& steps = options.steps;
  logits_.reserve((std::size_t{steps.sequences_most} + steps.scored_most) * decoder.vocab_size());
}

Status Generation::add(SequenceId id, Generate request) {
  if (sequences_.count(id) > 0) {
    return Error{ErrorKind::InvalidArgument, fmt::format("a sequence has this id: {}", id)};
  }
  MUSTER_TRY(engine::check_sampling(request.sampling, decoder_.vocab_size()));
  const auto unknown = std::find_if(request.ids.begin(), request.ids.end(),
                                    [&](auto token) { return token >= decoder_.vocab_size(); });
  if (unknown != request.ids.end()) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("a token id is not in the vocabulary of {}: {}", decoder_.vocab_size(),
                             *unknown)};
  }
  engine::TokenHistory history(request.sampling);
  const std::size_t prompt_size = request.ids.size() - request.reply_count;
  for (std::size_t i = 0; i < request.ids.size(); ++i) {
    if (i < prompt_size) {
      history.add_prompt(request.ids[i]);
    } else {
      history.add_reply(request.ids[i]);
    }
  }
  MUSTER_TRY(scheduler_.add(id, {.ids = std::move(request.ids),
                                 .token_limit = request.token_limit,
                                 .prefix_scope = request.prefix_scope,
                                 .score_from = request.score_from}));
  sequences_.emplace(
      id, Sequence{std::move(request.stop_ids), std::move(request.sampling), std::move(history),
                   /*is_continued=*/request.token_limit > 0});
  return Done{};
}

void Generation::cancel(SequenceId id) {
  end(id);
  tell_cache_use();
}

void Generation::end(SequenceId id) {
  scheduler_.remove(id);
  sequences_.erase(id);
}

void Generation::step() {
  propose();
  const auto parts = scheduler_.next();  // a copy: sequences that end are taken out of the original
  announce(parts);
  const auto begun_at = clock_.now();
  if (!compute(parts)) return;
  scheduler_.complete();
  Tokens told{.begun = begun(parts), .tokens = {}};
  for (const auto& part : parts) told.drafted_count += part.draft_count;
  std::size_t row = 0;
  const std::size_t vocab = decoder_.vocab_size();
  std::vector<DueSequence> due;
  for (const auto& part : parts) {
    const auto rows = std::span(logits_).subspan(row * vocab, logit_count(part) * vocab);
    row += logit_count(part);
    if (!score(part, rows, told.tokens) || !part.wants_logits) continue;
    if (sequences_.at(part.sequence).is_continued) {
      due.push_back({.id = part.sequence, .logits = rows.last((1 + part.draft_count) * vocab)});
    } else {
      finish(part.sequence, FinishReason::Length);
    }
  }
  if (!choose(due, told)) return;
  learn_cost(parts, clock_.now() - begun_at);
  tell_cache_use();
  events_.on_tokens(told);  // also none: that a step was done is a sign of life
  for (const auto& [id, reason] : std::exchange(finished_, {})) events_.on_finished(id, reason);
  for (const auto& [id, error] : std::exchange(failed_, {})) events_.on_failed(id, error);
}

void Generation::propose() {
  if (drafted_most_ == 0) return;
  std::vector<SequenceId> ids;
  std::vector<std::vector<std::uint32_t>> drafts;
  std::vector<DraftOffer> offers;
  for (auto& [id, sequence] : sequences_) {
    if (!sequence.is_replying || !scheduler_.generates(id)) continue;
    ids.push_back(id);
    drafts.push_back(sequence.lookup.draft(scheduler_.ids(id), drafted_most_));
    offers.push_back({.size = drafts.back().size(), .hit_rate = sequence.lookup.hit_rate()});
  }
  const auto lengths = draft_lengths(offers, ids.size(), drafted_of_all_most_, cost_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    drafts[i].resize(lengths[i]);
    scheduler_.propose(ids[i], std::move(drafts[i]));
  }
}

void Generation::learn_cost(const std::vector<StepPart>& parts, Duration time) {
  if (drafted_most_ == 0 || !only_generates(parts)) return;
  std::uint32_t count = 0;
  for (const auto& part : parts) count += part.count;
  cost_.learn(count, time);
}

// Who waits for the step is to know how long it may take, also where a sequence that was preempted
// is computed again, which nobody else sees.
void Generation::announce(const std::vector<StepPart>& parts) const {
  std::uint32_t count = 0;
  for (const auto& part : parts) count += part.count;
  if (count > parts.size()) events_.on_step_begun(count);
}

void Generation::tell_cache_use() {
  const auto& cache = scheduler_.cache();
  const CacheUse use{.held_block_count = cache.block_count() - cache.available_count(),
                     .preemption_count = scheduler_.preemption_count()};
  if (use == told_use_) return;
  told_use_ = use;
  events_.on_cache_use(use);
}

// A sequence begins where the scheduler found its first token that was not in the cache.
std::vector<BegunSequence> Generation::begun(const std::vector<StepPart>& parts) {
  std::vector<BegunSequence> all;
  for (const auto& part : parts) {
    auto& sequence = sequences_.at(part.sequence);
    if (std::exchange(sequence.has_begun, true)) continue;
    all.push_back({.sequence = part.sequence, .cached_count = part.begin});
  }
  return all;
}

// A step that fails is no fault of one of its sequences: none of them fails for it. Another worker
// can go on with each, as after a crash.
bool Generation::compute(const std::vector<StepPart>& parts) {
  std::vector<engine::StepSequence> steps;
  std::vector<std::vector<std::uint32_t>> drafted;  // the last one known and the draft, of each
  drafted.reserve(parts.size());
  std::size_t wanted = 0;
  for (const auto& part : parts) {
    auto tokens = scheduler_.ids(part.sequence).subspan(part.begin, part.count - part.draft_count);
    if (part.draft_count > 0) {
      auto& joined = drafted.emplace_back(tokens.begin(), tokens.end());
      const auto draft = scheduler_.draft(part.sequence);
      joined.insert(joined.end(), draft.begin(), draft.end());
      tokens = joined;
    }
    steps.push_back({.tokens = tokens,
                     .position = part.begin,
                     .blocks = scheduler_.blocks(part.sequence),
                     .logit_count = logit_count(part)});
    wanted += logit_count(part);
  }
  logits_.resize(std::max(logits_.size(), wanted * decoder_.vocab_size()));
  const auto computed =
      decoder_.step(steps, std::span(logits_).first(wanted * decoder_.vocab_size()));
  if (!computed) events_.on_broken(computed.error());
  return computed.has_value();
}

// The logits of a token score the id behind it. False where the sequence has failed.
bool Generation::score(const StepPart& part, std::span<const float> logits,
                       std::vector<GeneratedToken>& tokens) {
  const auto id = part.sequence;
  const auto top = sequences_.at(id).sampling.logprob_count.value_or(0);
  const std::size_t vocab = decoder_.vocab_size();
  const std::size_t first = part.begin + part.count - logit_count(part) + 1;
  for (std::size_t i = 0; i < part.score_count; ++i) {
    const auto token = scheduler_.ids(id)[first + i];
    auto logprobs = engine::score(logits.subspan(i * vocab, vocab), token, top);
    if (!logprobs) {
      failed_.emplace(id, logprobs.error());
      end(id);
      return false;
    }
    tokens.push_back(
        {.sequence = id, .token = token, .is_prompt = true, .logprobs = *std::move(logprobs)});
  }
  return true;
}

// On all cores of a CPU: with a temperature each of them takes a pass over the vocabulary. Nothing
// but the sequence itself is touched meanwhile.
bool Generation::choose(std::vector<DueSequence>& due, Tokens& told) {
  const auto shared = decoder_.share(due.size(), [&](std::size_t i) { sample(due[i]); });
  if (!shared) {
    events_.on_broken(shared.error());
    return false;
  }
  for (auto& [id, logits, sampled, status] : due) {
    // Each but the last one was drafted; where the one behind them could not be chosen, all were.
    const std::size_t others = status && !sampled.empty() ? 1 : 0;
    told.accepted_count += static_cast<std::uint32_t>(sampled.size() - others);
    for (auto& token : sampled) append(id, std::move(token), told.tokens);
    if (status) continue;
    failed_.emplace(id, status.error());
    end(id);
  }
  return true;
}

// The position is that of the token that is chosen, counted from the start of the prompt: the same
// when another worker goes on with the sequence, and whether it was drafted or not. Another one
// follows where the draft has this one.
void Generation::sample(DueSequence& due) {
  auto& sequence = sequences_.at(due.id);
  const auto draft = scheduler_.draft(due.id);
  const std::size_t known = scheduler_.ids(due.id).size();
  const std::size_t vocab = decoder_.vocab_size();
  for (std::size_t i = 0; i * vocab < due.logits.size(); ++i) {
    auto sampled = engine::sample(due.logits.subspan(i * vocab, vocab), sequence.sampling,
                                  sequence.history, known + i);
    if (!sampled) {
      due.status = sampled.error();
      return;
    }
    const auto token = sampled->token;
    due.sampled.push_back(*std::move(sampled));
    if (sequence.stops_at(token)) return;
    sequence.history.add_reply(token);
    if (i == draft.size() || draft[i] != token) return;
  }
}

void Generation::append(SequenceId id, engine::SampledToken sampled,
                        std::vector<GeneratedToken>& tokens) {
  auto& sequence = sequences_.at(id);
  if (sequence.stops_at(sampled.token)) return finish(id, FinishReason::Stop);
  tokens.push_back({.sequence = id,
                    .token = sampled.token,
                    .is_prompt = false,
                    .logprobs = std::move(sampled.logprobs)});
  sequence.is_replying = true;
  if (!scheduler_.append(id, sampled.token)) finish(id, FinishReason::Length);
}

void Generation::finish(SequenceId id, FinishReason reason) {
  finished_.emplace(id, reason);
  end(id);
}

}  // namespace muster
