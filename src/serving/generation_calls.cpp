// One owner of all calls for replies. A prompt is rendered and tokenised on a thread beside the
// loop, since a template is a stranger's program and a prompt may be long; all else is on the loop.
// A stop string ends a stream before its worker knows: the fleet is told to cancel it.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "base/wall_clock.h"
#include "serving/generation_service.h"

namespace muster {
namespace {

constexpr std::size_t kWaitingMost = 64;       // for a worker, of one decoder
constexpr std::uint64_t kBytesOfAToken = 4;    // of a prompt, before it is tokenised
constexpr std::uint32_t kReplyEstimate = 256;  // tokens of a reply that names no limit
constexpr Duration kRetryLeast = std::chrono::seconds(1);
constexpr Duration kRetryMost = std::chrono::seconds(60);

std::uint64_t prompt_bytes(const GenerationCall& call) {
  std::uint64_t bytes = call.text.size() + call.ids.size() * kBytesOfAToken;
  for (const auto& turn : call.turns) bytes += turn.content.size();
  return bytes;
}

}  // namespace

bool GenerationService::has_model(std::string_view name) const {
  return std::any_of(decoders_.begin(), decoders_.end(),
                     [&](const auto& decoder) { return decoder->name == name; });
}

std::variant<ServingDecoder*, CallError> GenerationService::find(const std::string& model) const {
  std::vector<std::string> names;
  for (const auto& decoder : decoders_) {
    if (model.empty() || decoder->name == model) return decoder.get();
    names.push_back(decoder->name);
  }
  const auto nearest = nearest_name(model, names);
  return CallError{.error = {ErrorKind::NotFound,
                             fmt::format("no model that generates has this name: {}{}", model,
                                         nearest ? "; did you mean " + *nearest + "?" : "")}};
}

CallId GenerationService::generate(GenerationCall asked, GenerationSink events) {
  const CallId id = next_call_++;
  const auto found = find(asked.model);
  if (const auto* error = std::get_if<CallError>(&found)) {
    events.on_failed(*error);
    return id;
  }
  auto* const decoder = *std::get_if<ServingDecoder*>(&found);
  auto reply = DecoderReply::make(*decoder->prompts->text.tokenizer, std::move(asked.stops),
                                  asked.turns.empty());
  if (!reply) {
    events.on_failed({.error = reply.error()});
    return id;
  }
  Call call{.decoder = decoder,
            .asked = std::make_shared<const GenerationCall>(std::move(asked)),
            .events = std::make_shared<const GenerationSink>(std::move(events)),
            .admitted = {},
            .usage = {},
            .reply = *std::move(reply),
            .stream = {},
            .asked_at = clock_.now(),
            .token_at = {}};
  if (const auto refused = admit(call)) {
    call.events->on_failed(*refused);
    return id;
  }
  ++decoder->request_count;
  ++counts_.request_count;
  prepare(id, calls_.emplace(id, std::move(call)).first->second);
  return id;
}

// Calls whose prompt is not with the fleet yet.
std::size_t GenerationService::unsent_count(const ServingDecoder& decoder) const {
  return static_cast<std::size_t>(std::count_if(calls_.begin(), calls_.end(), [&](const auto& one) {
    return one.second.decoder == &decoder && !one.second.stream;
  }));
}

std::optional<CallError> GenerationService::admit(Call& call) {
  const auto& decoder = *call.decoder;
  if (!decoder.can_work()) return no_device(decoder);
  if (decoder.fleet->waiting_count() + unsent_count(decoder) >= kWaitingMost) {
    ++counts_.refused_count;
    return CallError{.error = {ErrorKind::ResourceExhausted,
                               fmt::format("{} requests wait for this model", kWaitingMost)},
                     .retry_after = retry_after(decoder)};
  }
  // Clients ask for more tokens than the context has room for, to say "as many as there are".
  const std::uint64_t most = decoder.length_max();
  const std::uint64_t reply = call.asked->token_limit.value_or(kReplyEstimate);
  call.admitted = {.caller = call.asked->caller,
                   .text_count = 1,
                   .token_estimate = std::min(
                       most, prompt_bytes(*call.asked) / kBytesOfAToken + std::min(most, reply)),
                   .is_interactive = false};
  // The queue is judged above: of the caller's own limits alone.
  const auto refused = limits_.ask(
      call.admitted, {.tokens_per_second = 1e9, .eligible_device_count = 1}, clock_.now());
  if (!refused) return std::nullopt;
  ++counts_.limited_count;
  return CallError{.error = {ErrorKind::ResourceExhausted, refused->reason},
                   .retry_after = refused->retry_after};
}

// What a reply has taken so far, for those that are before it.
Duration GenerationService::retry_after(const ServingDecoder& decoder) const {
  const auto ended = counts_.stop_count + counts_.length_count;
  if (ended == 0) return kRetryLeast;
  const double of_one = counts_.duration.sum / static_cast<double>(ended);
  const double at_once = static_cast<double>(ServingDecoder::kStreamsMost * decoder.devices.size());
  const double ahead = static_cast<double>(decoder.fleet->waiting_count());
  const auto wait = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(of_one * std::max(1.0, ahead / at_once)));
  return std::clamp<Duration>(wait, kRetryLeast, kRetryMost);
}

// Why is in the log and with the model's state: it names files, which are not for everybody.
CallError GenerationService::no_device(const ServingDecoder& decoder) {
  return {.error = {ErrorKind::Unavailable, fmt::format("no device can load {}", decoder.name)},
          .retry_after = kRetryMost};
}

// A call that has ended meanwhile has let go of its prompt: nothing is computed for it.
void GenerationService::prepare(CallId id, const Call& call) {
  const auto job = [this, id, asked = std::weak_ptr(call.asked), prompts = call.decoder->prompts,
                    most = call.decoder->length_most] {
    const auto prompt = asked.lock();
    if (!prompt) return;
    const auto ids = std::make_shared<Result<std::vector<std::uint32_t>>>(
        prompts->ids_of(*prompt, most, static_cast<std::int64_t>(unix_seconds())));
    loop_.post([this, id, ids] { on_prepared(id, std::move(*ids)); });
  };
  if (const auto taken = prompts_.push(job); !taken) {
    fail(id, {.error = {ErrorKind::ResourceExhausted, "too many prompts wait to be tokenised"},
              .retry_after = kRetryLeast});
  }
}

void GenerationService::on_prepared(CallId id, Result<std::vector<std::uint32_t>> ids) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // its client has gone
  auto& call = found->second;
  if (!ids) return fail(id, {.error = ids.error(), .field = CallField::Prompt});
  const auto asked = std::exchange(call.asked, nullptr);
  auto& decoder = *call.decoder;
  const auto most = decoder.length_max();
  if (ids->size() >= most) {
    // As many as that are read, and no more.
    const bool is_cut = ids->size() >= decoder.length_most;
    return fail(id, {.error = {ErrorKind::InvalidArgument,
                               fmt::format("the context is {} tokens, prompt and reply together, "
                                           "and the prompt has {}{}",
                                           most, ids->size(), is_cut ? " or more" : "")},
                     .field = CallField::PromptLength});
  }
  call.usage.prompt_tokens = static_cast<std::uint32_t>(ids->size());
  const auto room = most - call.usage.prompt_tokens;
  call.stream =
      decoder.fleet->submit({.ids = *std::move(ids),
                             .token_limit = std::min(room, asked->token_limit.value_or(room)),
                             .stop_ids = asked->ignores_stop_ids ? std::vector<std::uint32_t>{}
                                                                 : decoder.prompts->text.stop_ids,
                             .prefix_scope = prefix_scope(asked->caller),
                             .sampling = asked->sampling});
  decoder.streams.emplace(*call.stream, id);
  decoder.prompt_token_count += call.usage.prompt_tokens;
  counts_.prompt_token_count += call.usage.prompt_tokens;
}

// A quick first token would tell one key's owner that another has asked what begins like this.
std::uint64_t GenerationService::prefix_scope(const std::string& caller) const {
  return options_.is_cache_shared || caller.empty() ? 0 : hash64(caller);
}

void GenerationService::cancel(CallId id) {
  if (calls_.count(id) == 0) return;
  ++counts_.cancelled_count;
  take(id, false);
}

void GenerationService::give_up() {
  std::vector<CallId> ids;
  for (const auto& [id, call] : calls_) ids.push_back(id);
  for (const auto id : ids) {
    if (calls_.count(id) == 0) continue;
    fail(id, {.error = {ErrorKind::Unavailable, "the server ended before the answer"}});
  }
}

// Takes a call out, and its stream from the workers. What a device has computed is charged, whether
// or not somebody reads it.
GenerationService::Call GenerationService::take(CallId id, bool is_computed) {
  const auto found = calls_.find(id);
  auto call = std::move(found->second);
  calls_.erase(found);
  is_computed |= call.usage.reply_tokens > 0;
  if (call.stream) {
    call.decoder->streams.erase(*call.stream);
    is_computed |= call.decoder->fleet->cancel(*call.stream);
  }
  const std::uint64_t tokens = std::uint64_t{call.usage.prompt_tokens} + call.usage.reply_tokens;
  limits_.on_end(call.admitted, is_computed ? tokens : 0, clock_.now());
  return call;
}

void GenerationService::fail(CallId id, const CallError& error, bool is_computed) {
  ++counts_.failed_count;
  take(id, is_computed).events->on_failed(error);
}

void GenerationService::end(CallId id, FinishReason reason) {
  const auto call = take(id, true);
  ++(reason == FinishReason::Stop ? counts_.stop_count : counts_.length_count);
  counts_.duration.add(clock_.now() - call.asked_at);
  call.events->on_end(reason, call.usage);
}

// ---- What the workers say ----

// Where a reply goes on elsewhere, all that is known of it is looked up again; what its client is
// told is of its beginning.
void GenerationService::on_begun(ServingDecoder& decoder, StreamId stream,
                                 std::uint32_t cached_count) {
  auto& usage = calls_.at(decoder.streams.at(stream)).usage;
  if (usage.reply_tokens == 0) usage.cached_tokens = cached_count;
  if (!options_.has_prefix_cache) return;
  counts_.prefix_query_token_count += std::uint64_t{usage.prompt_tokens} + usage.reply_tokens;
  counts_.prefix_hit_token_count += cached_count;
}

void GenerationService::on_token(ServingDecoder& decoder, StreamId stream,
                                 const GeneratedToken& token) {
  const auto id = decoder.streams.at(stream);
  auto& call = calls_.at(id);
  const auto now = clock_.now();
  if (call.token_at) {
    counts_.token_gap.add(now - *call.token_at);
  } else {
    counts_.first_token.add(now - call.asked_at);
  }
  call.token_at = now;
  ++call.usage.reply_tokens;
  ++counts_.reply_token_count;
  ++decoder.reply_token_count;
  const auto text = call.reply.push(token.token);
  const bool is_stopped = call.reply.is_stopped();
  const auto usage = call.usage;
  const auto events = call.events;
  events->on_text(text, usage);
  if (is_stopped && calls_.count(id) > 0) end(id, FinishReason::Stop);
}

void GenerationService::on_finished(ServingDecoder& decoder, StreamId stream, FinishReason reason) {
  const auto id = decoder.streams.at(stream);
  auto& call = calls_.at(id);
  const auto text = call.reply.finish();
  const bool is_stopped = call.reply.is_stopped();
  const auto usage = call.usage;
  const auto events = call.events;
  if (!text.empty()) events->on_text(text, usage);
  if (calls_.count(id) > 0) end(id, is_stopped ? FinishReason::Stop : reason);
}

void GenerationService::on_failed(ServingDecoder& decoder, StreamId stream, const Error& error,
                                  bool was_given) {
  // What keeps a worker from loading is no fault of the call.
  fail(decoder.streams.at(stream),
       decoder.can_work() ? CallError{.error = error} : no_device(decoder), was_given);
}

}  // namespace muster
