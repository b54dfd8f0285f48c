// What comes of the streams of calls: tokens become text, replies end, and with the last of them
// their call. A stop string ends a reply before its worker knows: the fleet is told to cancel it.
// Each event may cancel the call that it is about, which is looked up again behind it.

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "serving/generation_service.h"

namespace muster {

// What was cached of a prompt is what each of its replies found: one of several that begin at once
// computes it for the others. Where a reply goes on elsewhere, all that is known of it is looked up
// again; what its client is told is of its beginning.
void GenerationService::on_begun(ServingDecoder& decoder, StreamId stream,
                                 std::uint32_t cached_count) {
  const auto owner = decoder.streams.at(stream);
  auto& call = calls_.at(owner.call);
  const auto token_count = call.choices[owner.choice].token_count;
  if (token_count == 0) {
    auto& cached = call.usage.cached_tokens;
    cached = std::exchange(call.has_begun, true) ? std::min(cached, cached_count) : cached_count;
  }
  // A prompt that is scored is computed, whatever is cached.
  const bool is_scored = call.scored_first && owner.choice == 0 && token_count == 0;
  if (!looks_up_prefixes_ || is_scored) return;
  counts_.prefix_query_token_count += std::uint64_t{call.usage.prompt_tokens} + token_count;
  counts_.prefix_hit_token_count += cached_count;
}

void GenerationService::count_token(Call& call, Choice& choice, const GeneratedToken& token) {
  const auto now = clock_.now();
  if (choice.token_at) {
    counts_.token_gap.add(now - *choice.token_at);
  } else {
    counts_.first_token.add(now - call.asked_at);
  }
  choice.token_at = now;
  ++choice.token_count;
  if (token.logprobs) choice.logprob_sum += token.logprobs->chosen;
  ++call.usage.reply_tokens;
  ++call.decoder->reply_token_count;
  ++counts_.reply_token_count;
  charge_so_far(call);
}

// A key that has used its tokens asks for no more, though none of its replies has ended: what a
// reply without a limit will have nobody knows before. A step at a time, as at the beginning.
void GenerationService::charge_so_far(Call& call) {
  const std::uint64_t used = std::uint64_t{call.usage.prompt_tokens} + call.usage.reply_tokens;
  const auto charged = call.admitted.token_estimate;
  if (used <= charged) return;
  limits_.grow(call.admitted, std::max<std::uint64_t>(used - charged, kReplyEstimate),
               clock_.now());
}

// The echo, with the first of its tokens, which nothing foretells. False where the call was
// cancelled from within.
bool GenerationService::begin_scored(CallId id) {
  auto& call = calls_.at(id);
  if (!call.scored_first || std::exchange(call.is_echoed, true)) return true;
  for (auto& choice : call.choices) choice.has_begun = true;
  return tell_prompt(id, std::string(call.echo),
                     call.shown_prompt.next_unscored(*call.scored_first));
}

// Of each of the replies, whichever of them has it scored. An echo shows the special tokens that
// were written into the prompt, and not those that the tokenizer has added. False where the call
// was cancelled from within.
bool GenerationService::tell_prompt(CallId id, const std::string& text, ReplyToken token) {
  auto& call = calls_.at(id);
  auto& chosen = token.chosen;
  const auto at = std::min(call.echo_at, call.echo.size());
  chosen.is_echoed =
      !chosen.is_text && call.echo.compare(at, chosen.bytes.size(), chosen.bytes) == 0;
  if (chosen.is_text || chosen.is_echoed) call.echo_at += chosen.bytes.size();
  const auto usage = call.usage;
  const auto events = call.events;
  const auto count = static_cast<std::uint32_t>(call.choices.size());
  for (std::uint32_t i = 0; i < count && calls_.count(id) > 0; ++i) {
    events->on_part({.choice = i, .text = text, .token = &token}, usage);
  }
  return calls_.count(id) > 0;
}

// It adds no text: all of that has come with the first one.
void GenerationService::on_prompt_token(StreamOwner owner, const GeneratedToken& token) {
  if (!begin_scored(owner.call)) return;
  auto& shown = calls_.at(owner.call).shown_prompt;
  tell_prompt(owner.call, {}, shown.next(token.token, *token.logprobs));
}

void GenerationService::on_token(ServingDecoder& decoder, StreamId stream,
                                 const GeneratedToken& token) {
  const auto owner = decoder.streams.at(stream);
  if (token.is_prompt) return on_prompt_token(owner, token);
  if (!begin_scored(owner.call)) return;
  auto& call = calls_.at(owner.call);
  send(owner.call, call, call.choices.size());
  if ((call.shows_logprobs || call.is_ranked()) && !token.logprobs) {
    return fail(owner.call,
                {.error = {ErrorKind::Internal, "the worker told no log-probabilities"}}, true);
  }
  auto& choice = call.choices[owner.choice];
  count_token(call, choice, token);
  auto text = std::exchange(choice.has_begun, true) ? std::string() : call.echo;
  text += choice.reply.push(token.token);
  std::optional<ReplyToken> shown;
  if (call.shows_logprobs) shown = choice.shown.next(token.token, *token.logprobs);
  const bool is_stopped = choice.reply.is_stopped();
  const auto usage = call.usage;
  const auto events = call.events;
  events->on_part({.choice = owner.choice, .text = text, .token = shown ? &*shown : nullptr},
                  usage);
  if (is_stopped && calls_.count(owner.call) > 0) end_choice(owner, FinishReason::Stop);
}

void GenerationService::on_finished(ServingDecoder& decoder, StreamId stream, FinishReason reason) {
  const auto owner = decoder.streams.at(stream);
  if (!begin_scored(owner.call)) return;
  auto& call = calls_.at(owner.call);
  send(owner.call, call, call.choices.size());
  auto& choice = call.choices[owner.choice];
  auto text = std::exchange(choice.has_begun, true) ? std::string() : call.echo;
  text += choice.reply.finish();
  const bool is_stopped = choice.reply.is_stopped();
  const auto usage = call.usage;
  const auto events = call.events;
  if (!text.empty()) {
    events->on_part({.choice = owner.choice, .text = text, .token = nullptr}, usage);
  }
  if (calls_.count(owner.call) > 0) end_choice(owner, is_stopped ? FinishReason::Stop : reason);
}

void GenerationService::on_failed(ServingDecoder& decoder, StreamId stream, const Error& error,
                                  bool was_given) {
  // What keeps a worker from loading is no fault of the call, nor is a model that is damaged.
  auto told = decoder.can_work() ? CallError{.error = error} : no_device(decoder);
  if (told.error.kind == ErrorKind::Corrupt) told.error.kind = ErrorKind::Internal;
  fail(decoder.streams.at(stream).call, told, was_given);
}

void GenerationService::end_choice(StreamOwner owner, FinishReason reason) {
  auto& call = calls_.at(owner.call);
  auto& choice = call.choices[owner.choice];
  release(*call.decoder, choice);
  choice.is_over = true;
  ++(reason == FinishReason::Stop ? counts_.stop_count : counts_.length_count);
  counts_.duration.add(clock_.now() - call.asked_at);
  const auto events = call.events;
  events->on_choice_end(owner.choice, reason);
  const auto found = calls_.find(owner.call);
  if (found == calls_.end() || open_count(found->second) > 0) return;
  const auto ended = take(owner.call, true);
  events->on_end({.usage = ended.usage, .choices = wanted(ended)});
}

// Of equals the first; a reply without a token has no mean, and comes last. The token that ends a
// reply is not part of it and does not count.
std::vector<std::uint32_t> GenerationService::wanted(const Call& call) {
  std::vector<std::uint32_t> order(call.choices.size());
  std::iota(order.begin(), order.end(), 0U);
  if (call.is_ranked()) {
    const auto mean = [&](std::uint32_t index) {
      const auto& choice = call.choices[index];
      return choice.token_count == 0 ? -std::numeric_limits<double>::infinity()
                                     : choice.logprob_sum / choice.token_count;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return mean(a) > mean(b); });
  }
  order.resize(call.choice_count);
  return order;
}

}  // namespace muster
