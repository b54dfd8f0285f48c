// One owner of all calls for replies, from what is asked to the streams of the fleet. A prompt is
// rendered and tokenised on a thread beside the loop, since a template is a stranger's program and
// a prompt may be long; all else is on the loop. What comes of the streams is in
// generation_replies.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "base/wall_clock.h"
#include "scheduler/reply_admission.h"
#include "serving/generation_service.h"

namespace muster {
namespace {

constexpr std::uint64_t kBytesOfAToken = 4;  // of a prompt, before it is tokenised
constexpr Duration kRetryLeast = std::chrono::seconds(1);
constexpr Duration kRetryMost = std::chrono::seconds(60);

std::uint64_t prompt_bytes(const GenerationCall& call) {
  std::uint64_t bytes = call.text.size() + call.ids.size() * kBytesOfAToken;
  for (const auto& turn : call.turns) bytes += turn.content.size();
  for (const auto& [name, value] : call.template_variables) bytes += value.measure().weight;
  return bytes;
}

// The worker would say so as well, behind the wait for a place.
std::optional<CallError> wrong_bias(const ServingDecoder& decoder, const GenerationCall& call) {
  const auto most = decoder.spec.vocab_size;
  for (const auto& [id, bias] : call.sampling.logit_bias) {
    if (id < most) continue;
    return CallError{
        .error = {ErrorKind::InvalidArgument,
                  fmt::format("a token id is not in the vocabulary of {}: {}", most, id)},
        .field = CallField::LogitBias};
  }
  return std::nullopt;
}

// What a load's error or a worker said is in the log and with the model's state: it names files,
// which are not for everybody. How workers that never start have ended is told, unless it is memory
// that keeps another device from the model.
std::string why_none(const ServingDecoder& decoder) {
  const auto& fleet = *decoder.fleet;
  if (fleet.is_to_rest()) return fmt::format("every device of {} is drained", decoder.name);
  const auto groups = fleet.groups();
  const auto is_one_to_wait_for =
      std::any_of(groups.begin(), groups.end(),
                  [](const DecoderGroupView& group) { return group.waits_for_memory; });
  const auto failed = std::find_if(groups.begin(), groups.end(), [](const DecoderGroupView& group) {
    return !group.start_failure.empty();
  });
  if (is_one_to_wait_for || failed == groups.end()) {
    return fmt::format("no device can load {}", decoder.name);
  }
  return fmt::format("no device can load {}: {}", decoder.name, failed->start_failure);
}

}  // namespace

Result<std::vector<GenerationService::Choice>> GenerationService::make_choices(
    const ServingDecoder& decoder, const GenerationCall& asked) {
  const auto& tokenizer = *decoder.prompts->text.tokenizer;
  const bool continues_text = asked.turns.empty();
  std::vector<Choice> choices;
  for (std::uint32_t i = 0; i < asked.computed_count(); ++i) {
    auto reply = MUSTER_TRY(DecoderReply::make(tokenizer, asked.stops, continues_text));
    choices.push_back({.reply = std::move(reply), .shown = ShownTokens(tokenizer, continues_text)});
  }
  return choices;
}

CallId GenerationService::generate(GenerationCall asked, GenerationSink events) {
  std::vector<GenerationCall> calls;
  calls.push_back(std::move(asked));
  std::vector<GenerationSink> sinks;
  sinks.push_back(std::move(events));
  std::vector<CallId> ids;
  generate_all(std::move(calls), std::move(sinks), ids);
  return ids.front();
}

std::variant<std::vector<GenerationService::Call>, CallError> GenerationService::make_calls(
    std::vector<GenerationCall> asked) {
  const auto found = decoders_.find(asked.front().model);
  if (const auto* error = std::get_if<CallError>(&found)) return *error;
  auto* const decoder = *std::get_if<ServingDecoder*>(&found);
  if (const auto wrong = wrong_bias(*decoder, asked.front())) return *wrong;
  std::vector<Call> calls;
  for (auto& one : asked) {
    auto choices = make_choices(*decoder, one);
    if (!choices) return CallError{.error = choices.error()};
    const auto kept = std::make_shared<const GenerationCall>(std::move(one));
    calls.push_back({.decoder = decoder,
                     .asked = kept,
                     .events = nullptr,
                     .admitted = {},
                     .usage = {},
                     .choices = *std::move(choices),
                     .choice_count = kept->choice_count,
                     .shows_logprobs = kept->sampling.logprob_count.has_value(),
                     .shown_prompt = ShownTokens(*decoder->prompts->text.tokenizer, false),
                     .asked_at = clock_.now(),
                     .deadline = kept->deadline});
  }
  return calls;
}

// What is told at once may cancel the rest, which is looked up again therefore.
void GenerationService::generate_all(std::vector<GenerationCall> asked,
                                     std::vector<GenerationSink> sinks, std::vector<CallId>& ids) {
  ids.clear();
  for (std::size_t i = 0; i < asked.size(); ++i) ids.push_back(next_call_++);
  auto made = make_calls(std::move(asked));
  if (const auto* error = std::get_if<CallError>(&made)) return sinks.front().on_failed(*error);
  auto& calls = *std::get_if<std::vector<Call>>(&made);
  if (const auto refused = admit(calls)) return sinks.front().on_failed(*refused);
  ++calls.front().decoder->request_count;
  ++counts_.request_count;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].events = std::make_shared<const GenerationSink>(std::move(sinks[i]));
    calls_.emplace(ids[i], std::move(calls[i]));
  }
  for (const auto id : ids) {
    const auto call = calls_.find(id);
    if (call == calls_.end()) continue;
    set_timer(id, call->second);
    prepare(id, call->second);
  }
}

// Replies that are not with the fleet yet.
std::size_t GenerationService::unsent_count(const ServingDecoder& decoder) const {
  std::size_t count = 0;
  for (const auto& [id, call] : calls_) {
    if (call.decoder == &decoder) count += call.choices.size() - call.sent_count;
  }
  return count;
}

// Replies of a decoder that no worker has, by their callers.
std::map<std::string_view, std::size_t> GenerationService::unplaced(
    const ServingDecoder& decoder) const {
  std::map<std::string_view, std::size_t> counts;
  for (const auto& [id, call] : calls_) {
    if (call.decoder != &decoder) continue;
    auto& count = counts[call.admitted.caller];
    count += call.choices.size() - call.sent_count;
    for (const auto& choice : call.choices) {
      if (choice.stream && !decoder.fleet->group_of(*choice.stream)) ++count;
    }
  }
  return counts;
}

// Those for whom there is a place are being tokenised, or given away.
std::optional<CallError> GenerationService::ask_queue(const Call& call, std::size_t count) const {
  const auto& decoder = *call.decoder;
  const auto answer = ask_for_places({.free_count = decoder.fleet->free_count(),
                                      .waiting_most = replies_waiting_most_,
                                      .waiting = unplaced(decoder)},
                                     call.asked->caller, count);
  const auto refuse = [&](std::string reason) {
    return CallError{.error = {ErrorKind::ResourceExhausted, std::move(reason)},
                     .retry_after = retry_after(decoder)};
  };
  switch (answer.verdict) {
    case ReplyAnswer::Verdict::NoRoom: {
      const auto more = count == 1 ? "" : fmt::format(", and {} more are too many", count);
      return refuse(fmt::format("{} {} for this model{}", answer.waiting_count,
                                answer.waiting_count == 1 ? "request waits" : "requests wait",
                                more));
    }
    case ReplyAnswer::Verdict::OthersRoom:
      return refuse(
          fmt::format("{} requests of key {} wait for this model, and the room that is "
                      "left is for others",
                      answer.waiting_count, call.asked->caller));
    case ReplyAnswer::Verdict::LetIn:
      break;
  }
  return ask_wait(decoder, answer.place_count);
}

// place_count: that have to come free before it has one.
std::optional<CallError> GenerationService::ask_wait(const ServingDecoder& decoder,
                                                     std::size_t place_count) const {
  if (place_count == 0) return std::nullopt;
  const auto wait = decoder.fleet->wait_for_places(place_count);
  if (!wait || *wait <= queue_budget_) return std::nullopt;
  return CallError{
      .error = {ErrorKind::ResourceExhausted,
                fmt::format(
                    "too busy: the wait would be {:.1f} s long and may be {:.1f} s (queue_budget)",
                    seconds(*wait), seconds(queue_budget_))},
      .retry_after = std::clamp<Duration>(*wait - queue_budget_, kRetryLeast, kRetryMost)};
}

// Else what was let in would fail when its prompt is to be read.
std::optional<CallError> GenerationService::ask_prompts(std::size_t count) const {
  if (prompts_.has_room_for(count)) return std::nullopt;
  return CallError{.error = {ErrorKind::ResourceExhausted, "too many prompts wait to be tokenised"},
                   .retry_after = kRetryLeast};
}

// Clients ask for more tokens than the context has room for, to say "as many as there are". The
// prompt counts once, as it does in what is charged.
AdmissionRequest GenerationService::charge_of(const Call& call) {
  const std::uint64_t count = call.choices.size();
  const std::uint64_t most = call.decoder->length_max();
  const std::uint64_t reply =
      std::min<std::uint64_t>(most, call.asked->token_limit.value_or(kReplyEstimate));
  const std::uint64_t first = std::min(most, prompt_bytes(*call.asked) / kBytesOfAToken + reply);
  return {.caller = call.asked->caller,
          .text_count = count,
          .request_count = count,
          .token_estimate = first + (count - 1) * reply,
          .is_interactive = false};
}

// Calls of one request are asked for together, and each gives back its own part.
std::optional<CallError> GenerationService::admit(std::span<Call> calls) {
  const auto& decoder = *calls.front().decoder;
  const auto field = calls.size() == 1 ? CallField::Choices : CallField::Prompt;
  if (!decoder.can_work()) return no_device(decoder);
  if (!decoder.was_ever_ready()) {
    return CallError{
        .error = {ErrorKind::Unavailable, fmt::format("{} is being loaded", decoder.name)},
        .retry_after = kRetryLeast};
  }
  AdmissionRequest all{.caller = calls.front().asked->caller};
  for (auto& call : calls) {
    call.admitted = charge_of(call);
    all.text_count += call.admitted.text_count;
    all.request_count += call.admitted.request_count;
    all.token_estimate += call.admitted.token_estimate;
  }
  const auto count = all.request_count;
  if (const auto most = replies_at_once_ * decoder.devices.size(); count > most) {
    return CallError{
        .error = {ErrorKind::InvalidArgument,
                  fmt::format("{} computes at most {} replies at a time (max_num_seqs): {}",
                              decoder.name, most, count)},
        .field = field};
  }
  auto refused = ask_queue(calls.front(), count);
  if (!refused) refused = ask_prompts(calls.size());
  if (refused) {
    ++counts_.refused_count;
    return refused;
  }
  // The queue is judged above: of the caller's own limits alone.
  const auto limited =
      limits_.ask(all, {.tokens_per_second = 1e9, .eligible_device_count = 1}, clock_.now());
  if (!limited) return std::nullopt;
  if (limited->is_final) {
    return CallError{.error = {ErrorKind::InvalidArgument, limited->reason}, .field = field};
  }
  ++counts_.limited_count;
  return CallError{.error = {ErrorKind::ResourceExhausted, limited->reason},
                   .retry_after = limited->retry_after};
}

// What a reply has taken so far, for those that are before it.
Duration GenerationService::retry_after(const ServingDecoder& decoder) const {
  const auto ended = counts_.stop_count + counts_.length_count;
  if (ended == 0) return kRetryLeast;
  const double of_one = counts_.duration.sum / static_cast<double>(ended);
  const double at_once = static_cast<double>(replies_at_once_ * decoder.devices.size());
  const double ahead = static_cast<double>(decoder.fleet->waiting_count());
  const auto wait = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(of_one * std::max(1.0, ahead / at_once)));
  return std::clamp<Duration>(wait, kRetryLeast, kRetryMost);
}

CallError GenerationService::no_device(const ServingDecoder& decoder) {
  return {.error = {ErrorKind::Unavailable, why_none(decoder)}, .retry_after = kRetryMost};
}

// A call that has ended meanwhile has let go of its prompt: nothing is computed for it.
void GenerationService::prepare(CallId id, const Call& call) {
  // One token more than the longest context: one of exactly its length may be scored.
  const auto job = [this, id, asked = std::weak_ptr(call.asked), prompts = call.decoder->prompts,
                    most = call.decoder->length_most + 1] {
    const auto prompt = asked.lock();
    if (!prompt) return;
    const auto prepared = std::make_shared<Prepared>(
        Prepared{.ids = prompts->ids_of(*prompt, most, static_cast<std::int64_t>(unix_seconds()))});
    if (prepared->ids && prompt->echoes_prompt) prepared->echo = prompts->text_of(*prompt);
    loop_.post([this, id, prepared] { on_prepared(id, std::move(*prepared)); });
  };
  const auto& given = *call.asked;
  // There is room: `admit` has seen it, and nobody else has put one there since.
  if (const auto taken = prompts_.push(flow_of(given.caller), prompt_bytes(given), job); !taken) {
    fail(id, {.error = taken.error()});
  }
}

void GenerationService::on_prepared(CallId id, Prepared prepared) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // its client has gone
  auto& call = found->second;
  const auto& ids = prepared.ids;
  if (!ids) return fail(id, {.error = ids.error(), .field = CallField::Prompt});
  const auto asked = std::exchange(call.asked, nullptr);
  auto& decoder = *call.decoder;
  const auto most = decoder.length_max();
  const bool is_continued = asked->token_limit != 0U;
  if (ids->size() + (is_continued ? 1 : 0) > most) {
    // As many as that are read, and no more.
    const bool is_cut = ids->size() > decoder.length_most;
    return fail(id, {.error = {ErrorKind::InvalidArgument,
                               fmt::format("the context is {} tokens, prompt and reply together, "
                                           "and the prompt has {}{}",
                                           most, ids->size(), is_cut ? " or more" : "")},
                     .field = CallField::PromptLength});
  }
  call.usage.prompt_tokens = static_cast<std::uint32_t>(ids->size());
  call.echo = std::move(prepared.echo);
  submit(id, call, *asked, *ids);
  decoder.prompt_token_count += call.usage.prompt_tokens;
  counts_.prompt_token_count += call.usage.prompt_tokens;
}

FlowId GenerationService::flow_of(const std::string& caller) {
  return caller.empty() ? 0 : hash64(caller);
}

// A quick first token would tell one key's owner that another has asked what begins like this.
std::uint64_t GenerationService::prefix_scope(const std::string& caller) const {
  return shares_prefixes_ ? 0 : flow_of(caller);
}

// Those on one worker share what the first of them computes of the prompt. One that is scored is
// computed whole, whatever is cached: one reply has it scored for all, and the others come behind.
void GenerationService::submit(CallId id, Call& call, const GenerationCall& asked,
                               const std::vector<std::uint32_t>& ids) {
  auto& decoder = *call.decoder;
  const auto room = decoder.length_max() - call.usage.prompt_tokens;
  // lm-eval-harness asks for one token behind a text that it has scored, and takes the last one
  // off: a token that only ends the reply has to be there, too.
  const bool keeps_stop = asked.scores_prompt() && asked.token_limit == 1U;
  call.request = {.ids = ids,
                  .token_limit = std::min(room, asked.token_limit.value_or(room)),
                  .stop_ids = asked.ignores_stop_ids || keeps_stop ? std::vector<std::uint32_t>{}
                                                                   : decoder.prompts->text.stop_ids,
                  .prefix_scope = prefix_scope(asked.caller),
                  .flow = flow_of(asked.caller),
                  .scores_prompt = asked.scores_prompt(),
                  .sampling = asked.sampling};
  if (call.is_ranked() && !call.shows_logprobs) call.request.sampling.logprob_count = 0;
  if (!asked.scores_prompt()) return send(id, call, call.choices.size());
  call.scored_first = ids.front();
  send(id, call, 1);
}

// Each reply is a stream that the fleet knows nothing more of: it may run on any worker.
// count: of the choices that are to be with it then.
void GenerationService::send(CallId id, Call& call, std::size_t count) {
  if (call.sent_count >= count) return;
  auto& decoder = *call.decoder;
  for (; call.sent_count < count; ++call.sent_count) {
    const auto choice = static_cast<std::uint32_t>(call.sent_count);
    call.request.sampling.choice = choice;
    const auto stream = decoder.fleet->submit(call.request);
    call.choices[choice].stream = stream;
    decoder.streams.emplace(stream, StreamOwner{.call = id, .choice = choice});
  }
  call.request.scores_prompt = false;
  if (count == call.choices.size()) call.request = {};
}

void GenerationService::cancel(CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  counts_.cancelled_count += open_count(found->second);
  take(id, false);
}

void GenerationService::give_up() {
  fail_all({ErrorKind::Unavailable, "the server ended before the answer"});
}

// Of one decoder; of all without one. What hears of a failure may cancel others.
void GenerationService::fail_all(const Error& error, const ServingDecoder* of_decoder) {
  std::vector<CallId> ids;
  for (const auto& [id, call] : calls_) {
    if (of_decoder == nullptr || call.decoder == of_decoder) ids.push_back(id);
  }
  for (const auto id : ids) {
    if (calls_.count(id) > 0) fail(id, {.error = error});
  }
}

std::size_t GenerationService::open_count(const Call& call) {
  return static_cast<std::size_t>(std::count_if(call.choices.begin(), call.choices.end(),
                                                [](const Choice& one) { return !one.is_over; }));
}

// Takes a reply from the workers, where it still is with them. True where one had it, and so may
// have computed at it.
bool GenerationService::release(ServingDecoder& decoder, Choice& choice) {
  const auto stream = std::exchange(choice.stream, std::nullopt);
  if (!stream) return false;
  decoder.streams.erase(*stream);
  return decoder.fleet->cancel(*stream);
}

// Takes a call out, and its streams from the workers. What a device has computed is charged,
// whether or not somebody reads it.
GenerationService::Call GenerationService::take(CallId id, bool is_computed) {
  const auto found = calls_.find(id);
  auto call = std::move(found->second);
  calls_.erase(found);
  is_computed |= call.usage.reply_tokens > 0;
  // From the last one, so that its key's turn is charged for none that waited.
  for (auto choice = call.choices.rbegin(); choice != call.choices.rend(); ++choice) {
    is_computed |= release(*call.decoder, *choice);
  }
  const std::uint64_t tokens = std::uint64_t{call.usage.prompt_tokens} + call.usage.reply_tokens;
  limits_.on_end(call.admitted, is_computed ? tokens : 0, clock_.now());
  decoders_.on_call_end(*call.decoder);
  return call;
}

// What is wrong with a field of the request is answered 400, of whatever kind it is: a prompt on
// which the template comes to a limit, say.
void GenerationService::fail(CallId id, const CallError& error, bool is_computed) {
  const auto kind = error.error.kind;
  const bool is_invalid = kind == ErrorKind::InvalidArgument || error.field != CallField::Other;
  (kind == ErrorKind::DeadlineExceeded ? counts_.expired_count
   : is_invalid                        ? counts_.invalid_count
                                       : counts_.failed_count) += open_count(calls_.at(id));
  take(id, is_computed).events->on_failed(error);
}

}  // namespace muster
