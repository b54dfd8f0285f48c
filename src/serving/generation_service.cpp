// One owner of all calls for replies. A prompt is rendered and tokenised on a thread beside the
// loop, since a template is a stranger's program and a prompt may be long; all else is on the loop.
// A stop string ends a stream before its worker knows: the fleet is told to cancel it.

#include "serving/generation_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"
#include "base/text.h"
#include "base/wall_clock.h"

namespace muster {
namespace {

constexpr std::uint32_t kStreamsMost = 32;     // that one worker has at once
constexpr std::size_t kWaitingMost = 64;       // for a worker, of one decoder
constexpr std::size_t kPromptsMost = 1024;     // that wait to be tokenised
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

void SecondsHistogram::add(Duration time) {
  const double took = seconds(time);
  const auto& bounds = ServiceStatus::kBounds;
  ++counts[static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), took) -
                                    bounds.begin())];
  sum += took;
}

GenerationService::GenerationService(const ServeOptions& options, EventLoop& loop, Events events,
                                     const Clock& clock)
    : options_(options),
      loop_(loop),
      events_(std::move(events)),
      clock_(clock),
      limits_(AdmissionOptions{}),
      prompts_(kPromptsMost) {}

GenerationService::~GenerationService() {
  is_ending_ = true;
  prompts_.close();
}

Result<std::unique_ptr<GenerationService>> GenerationService::start(const ServeOptions& options,
                                                                    EventLoop& loop, Events events,
                                                                    const Clock& clock) {
  std::unique_ptr<GenerationService> service(
      new GenerationService(options, loop, std::move(events), clock));
  MUSTER_TRY(service->open());
  return service;
}

Status GenerationService::open() {
  for (const auto& asked : options_.decoders) MUSTER_TRY(open_decoder(asked));
  prompt_thread_ = std::jthread([this] {
    while (const auto job = prompts_.take()) {
      if (!is_ending_) (*job)();
    }
  });
  return Done{};
}

Status GenerationService::open_decoder(const ServedModel& asked) {
  auto read = MUSTER_TRY(read_decoder(asked, options_.devices));
  for (const auto& other : decoders_) {
    if (other->name != read->name) continue;
    return Error{
        ErrorKind::InvalidArgument,
        fmt::format("two models have the same name: {}; NAME=MODEL gives another", read->name)};
  }
  auto& decoder = *decoders_.emplace_back(std::move(read));
  DecoderFleetOptions options{.devices = {},
                              .worker_program = options_.worker_program,
                              .torch_root = options_.torch_root,
                              .build = std::string(build_name()),
                              .source = decoder.path,
                              .precision = decoder.precision,
                              .streams_most = kStreamsMost};
  std::uint64_t free_bytes = UINT64_MAX;
  for (const auto index : decoder.devices) {
    options.devices.push_back(options_.devices[index]);
    const auto& places = options_.machine.devices;
    free_bytes = std::min(free_bytes, index < places.size() ? places[index].free_bytes : 0);
  }
  options.cache_bytes = fit_decoder_cache(decoder, free_bytes);
  DecoderFleetEvents events;
  events.on_token = [this, &decoder](StreamId stream, const GeneratedToken& token) {
    on_token(decoder, stream, token);
  };
  events.on_finished = [this, &decoder](StreamId stream, FinishReason reason) {
    on_finished(decoder, stream, reason);
  };
  events.on_failed = [this, &decoder](StreamId stream, const Error& error) {
    on_failed(decoder, stream, error);
  };
  events.on_change = [this, &decoder] { tell_state(decoder); };
  events.on_notice = [this, &decoder](const std::string& text, std::size_t group) {
    events_.on_notice(fmt::format("{}: {}", decoder.name, text),
                      options_.devices[decoder.devices[group]].name());
  };
  decoder.fleet = MUSTER_TRY(DecoderFleet::start(std::move(options), std::move(events), clock_));
  decoder.timer = loop_.timer([this, &decoder] { pump(decoder); });
  decoder.watch = loop_.watch(decoder.fleet->wait_fd(), [this, &decoder] { pump(decoder); });
  decoder.timer->set(decoder.fleet->next_deadline());
  return Done{};
}

void GenerationService::pump(ServingDecoder& decoder) {
  if (decoder.is_broken) return;
  if (const auto stepped = decoder.fleet->step(); !stepped) {
    decoder.is_broken = true;
    return events_.on_fatal(stepped.error());
  }
  decoder.timer->set(decoder.fleet->next_deadline());
}

void GenerationService::tell_state(ServingDecoder& decoder) const {
  const bool is_ready = decoder.fleet->is_ready();
  if (std::exchange(decoder.was_ready, is_ready) == is_ready) return;
  events_.on_notice(
      fmt::format("model {}: {}", decoder.name, is_ready ? "ready" : "no device has it now"),
      std::nullopt);
}

// ---- Calls ----

CallId GenerationService::generate(GenerationCall asked, GenerationSink events) {
  const CallId id = next_call_++;
  const auto refuse = [&](const CallError& error) {
    events.on_failed(error);
    return id;
  };
  const auto found = std::find_if(decoders_.begin(), decoders_.end(), [&](const auto& decoder) {
    return asked.model.empty() || decoder->name == asked.model;
  });
  if (found == decoders_.end()) {
    std::vector<std::string> names;
    for (const auto& decoder : decoders_) names.push_back(decoder->name);
    const auto nearest = nearest_name(asked.model, names);
    return refuse({.error = {ErrorKind::NotFound,
                             fmt::format("no model that generates has this name: {}{}", asked.model,
                                         nearest ? "; did you mean " + *nearest + "?" : "")}});
  }
  auto& decoder = **found;
  auto reply = DecoderReply::make(*decoder.prompts->text.tokenizer, std::move(asked.stops),
                                  asked.turns.empty());
  if (!reply) return refuse({.error = reply.error()});
  const auto bytes = prompt_bytes(asked);
  Call call{.decoder = &decoder,
            .asked = std::move(asked),
            .events = std::move(events),
            .admitted = {},
            .usage = {},
            .reply = *std::move(reply),
            .stream = {},
            .asked_at = clock_.now(),
            .token_at = {}};
  if (const auto refused = admit(call, bytes)) {
    call.events.on_failed(*refused);
    return id;
  }
  ++decoder.request_count;
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

std::optional<CallError> GenerationService::admit(Call& call, std::uint64_t bytes) {
  const auto& decoder = *call.decoder;
  if (decoder.is_broken) {
    return CallError{.error = {ErrorKind::Unavailable, "no device can work"}};
  }
  if (decoder.fleet->waiting_count() + unsent_count(decoder) >= kWaitingMost) {
    ++counts_.refused_count;
    return CallError{.error = {ErrorKind::ResourceExhausted,
                               fmt::format("{} requests wait for this model", kWaitingMost)},
                     .retry_after = retry_after(decoder)};
  }
  call.admitted = {
      .caller = call.asked.caller,
      .text_count = 1,
      .token_estimate = bytes / kBytesOfAToken + call.asked.token_limit.value_or(kReplyEstimate),
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
  const double at_once = static_cast<double>(kStreamsMost * decoder.devices.size());
  const double ahead = static_cast<double>(decoder.fleet->waiting_count());
  const auto wait = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(of_one * std::max(1.0, ahead / at_once)));
  return std::clamp<Duration>(wait, kRetryLeast, kRetryMost);
}

void GenerationService::prepare(CallId id, Call& call) {
  const auto asked = std::make_shared<GenerationCall>(call.asked);
  call.asked.turns = {};
  call.asked.text = {};
  call.asked.ids = {};
  const auto job = [this, id, asked, prompts = call.decoder->prompts] {
    const auto ids = std::make_shared<Result<std::vector<std::uint32_t>>>(
        prompts->ids_of(*asked, static_cast<std::int64_t>(unix_seconds())));
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
  auto& decoder = *call.decoder;
  call.usage.prompt_tokens = static_cast<std::uint32_t>(ids->size());
  const auto most = decoder.length_max();
  if (ids->size() >= most) {
    return fail(id, {.error = {ErrorKind::InvalidArgument,
                               fmt::format("the context is {} tokens, prompt and reply together, "
                                           "and the prompt has {}",
                                           most, ids->size())},
                     .field = CallField::PromptLength});
  }
  const auto room = most - call.usage.prompt_tokens;
  call.stream = decoder.fleet->submit(
      {.ids = *std::move(ids),
       .token_limit = std::min(room, call.asked.token_limit.value_or(room)),
       .stop_ids = call.asked.ignores_stop_ids ? std::vector<std::uint32_t>{}
                                               : decoder.prompts->text.stop_ids,
       .sampling = call.asked.sampling});
  decoder.streams.emplace(*call.stream, id);
  decoder.prompt_token_count += call.usage.prompt_tokens;
  counts_.prompt_token_count += call.usage.prompt_tokens;
}

void GenerationService::cancel(CallId id) {
  if (calls_.count(id) == 0) return;
  ++counts_.cancelled_count;
  const auto call = take(id);
}

// Takes a call out, and its stream from the workers.
GenerationService::Call GenerationService::take(CallId id) {
  const auto found = calls_.find(id);
  auto call = std::move(found->second);
  calls_.erase(found);
  if (call.stream) {
    call.decoder->streams.erase(*call.stream);
    call.decoder->fleet->cancel(*call.stream);
  }
  limits_.on_end(call.admitted, call.usage.prompt_tokens + call.usage.reply_tokens, clock_.now());
  return call;
}

void GenerationService::fail(CallId id, const CallError& error) {
  ++counts_.failed_count;
  take(id).events.on_failed(error);
}

void GenerationService::end(CallId id, FinishReason reason) {
  auto call = take(id);
  ++(reason == FinishReason::Stop ? counts_.stop_count : counts_.length_count);
  counts_.duration.add(clock_.now() - call.asked_at);
  call.events.on_end(reason, call.usage);
}

// ---- What the workers say ----

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
  // It may cancel the call.
  call.events.on_text(text, GenerationUsage(call.usage));
  if (is_stopped && calls_.count(id) > 0) end(id, FinishReason::Stop);
}

void GenerationService::on_finished(ServingDecoder& decoder, StreamId stream, FinishReason reason) {
  const auto id = decoder.streams.at(stream);
  auto& call = calls_.at(id);
  const auto text = call.reply.finish();
  const bool is_stopped = call.reply.is_stopped();
  if (!text.empty()) call.events.on_text(text, GenerationUsage(call.usage));
  if (calls_.count(id) > 0) end(id, is_stopped ? FinishReason::Stop : reason);
}

void GenerationService::on_failed(ServingDecoder& decoder, StreamId stream, const Error& error) {
  fail(decoder.streams.at(stream), {.error = error});
}

// ---- What is shown ----

std::vector<ServedDecoderStatus> GenerationService::models() const {
  std::vector<ServedDecoderStatus> all;
  for (const auto& decoder : decoders_) all.push_back(decoder->status(options_.devices));
  return all;
}

GenerationStatus GenerationService::status() const {
  auto status = counts_;
  for (const auto& decoder : decoders_) {
    status.running_count += decoder->fleet->running_count();
    status.waiting_count += decoder->fleet->waiting_count() + unsent_count(*decoder);
  }
  return status;
}

bool GenerationService::is_ready() const {
  return std::any_of(decoders_.begin(), decoders_.end(), [](const auto& decoder) {
    return !decoder->is_broken && decoder->fleet->is_ready();
  });
}

void GenerationService::set_limits(std::map<std::string, CallerLimits> limits) {
  limits_.set_limits(std::move(limits));
}

}  // namespace muster
