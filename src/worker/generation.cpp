// One decoder's sequences: the scheduler says what a step computes, the engine computes it, the
// sampler chooses.

#include "worker/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {

Generation::Generation(engine::Decoder& decoder, const StepOptions& options,
                       GenerationEvents events)
    : decoder_(decoder), scheduler_(options), events_(std::move(events)) {}

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
                                 .prefix_scope = request.prefix_scope}));
  sequences_.emplace(
      id, Sequence{std::move(request.stop_ids), std::move(request.sampling), std::move(history)});
  return Done{};
}

void Generation::cancel(SequenceId id) { end(id); }

void Generation::end(SequenceId id) {
  scheduler_.remove(id);
  sequences_.erase(id);
}

void Generation::step() {
  const auto parts = scheduler_.next();  // a copy: sequences that end are taken out of the original
  if (!compute(parts)) return;
  scheduler_.complete();
  Tokens told{.begun = begun(parts), .tokens = {}};
  std::size_t row = 0;
  const std::size_t vocab = decoder_.vocab_size();
  for (const auto& part : parts) {
    if (!part.wants_logits) continue;
    choose(part.sequence, std::span(logits_).subspan(row++ * vocab, vocab), told.tokens);
  }
  events_.on_tokens(told);  // also none: that a step was done is a sign of life
  for (const auto& [id, reason] : std::exchange(finished_, {})) events_.on_finished(id, reason);
  for (const auto& [id, error] : std::exchange(failed_, {})) events_.on_failed(id, error);
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

// A step that fails fails for all of its sequences: what they share is at fault, not one of them.
bool Generation::compute(const std::vector<StepPart>& parts) {
  std::vector<engine::StepSequence> steps;
  std::size_t wanted = 0;
  for (const auto& part : parts) {
    steps.push_back({.tokens = scheduler_.ids(part.sequence).subspan(part.begin, part.count),
                     .position = part.begin,
                     .blocks = scheduler_.blocks(part.sequence),
                     .wants_logits = part.wants_logits});
    wanted += part.wants_logits ? 1 : 0;
  }
  logits_.resize(std::max(logits_.size(), wanted * decoder_.vocab_size()));
  const auto computed =
      decoder_.step(steps, std::span(logits_).first(wanted * decoder_.vocab_size()));
  if (computed) return true;
  for (const auto& part : parts) {
    end(part.sequence);
    events_.on_failed(part.sequence, computed.error());
  }
  return false;
}

void Generation::choose(SequenceId id, std::span<float> logits,
                        std::vector<GeneratedToken>& tokens) {
  auto& sequence = sequences_.at(id);
  // The position of the token that is chosen, counted from the start of the prompt: the same when
  // another worker goes on with the sequence.
  auto sampled =
      engine::sample(logits, sequence.sampling, sequence.history, scheduler_.ids(id).size());
  if (!sampled) {
    failed_.emplace(id, sampled.error());
    return end(id);
  }
  const auto& stops = sequence.stop_ids;
  const bool is_stop = std::find(stops.begin(), stops.end(), sampled->token) != stops.end();
  if (is_stop) {
    finished_.emplace(id, FinishReason::Stop);
    return end(id);
  }
  tokens.push_back(
      {.sequence = id, .token = sampled->token, .logprobs = std::move(sampled->logprobs)});
  sequence.history.add_reply(sampled->token);
  if (scheduler_.append(id, sampled->token)) return;
  finished_.emplace(id, FinishReason::Length);
  end(id);
}

}  // namespace muster
