// The decoders of a server: their start, their turns on the loop, and what is shown of them. What
// becomes of a call is in generation_calls.cpp and generation_replies.cpp.

#include "serving/generation_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/build_info.h"

namespace muster {
namespace {

constexpr std::size_t kPromptsMost = 1024;  // that wait to be tokenised; those of gone clients too

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
                              .streams_most = ServingDecoder::kStreamsMost,
                              .has_prefix_cache = options_.has_prefix_cache};
  std::uint64_t free_bytes = UINT64_MAX;
  for (const auto index : decoder.devices) {
    options.devices.push_back(options_.devices[index]);
    const auto& places = options_.machine.devices;
    free_bytes = std::min(free_bytes, index < places.size() ? places[index].free_bytes : 0);
  }
  options.cache_bytes = fit_decoder_cache(decoder, free_bytes);
  DecoderFleetEvents events;
  events.on_begun = [this, &decoder](StreamId stream, std::uint32_t cached_count) {
    on_begun(decoder, stream, cached_count);
  };
  events.on_token = [this, &decoder](StreamId stream, const GeneratedToken& token) {
    on_token(decoder, stream, token);
  };
  events.on_finished = [this, &decoder](StreamId stream, FinishReason reason) {
    on_finished(decoder, stream, reason);
  };
  events.on_failed = [this, &decoder](StreamId stream, const Error& error, bool was_given) {
    on_failed(decoder, stream, error, was_given);
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
