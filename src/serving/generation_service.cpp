// The start of the service, and what is shown of it. What becomes of a call is in
// generation_calls.cpp and generation_replies.cpp, which decoders there are in
// serving_decoders.cpp.

#include "serving/generation_service.h"

#include <algorithm>
#include <utility>

namespace muster {

void SecondsHistogram::add(Duration time) {
  const double took = seconds(time);
  const auto& bounds = ServiceStatus::kBounds;
  ++counts[static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), took) -
                                    bounds.begin())];
  sum += took;
}

GenerationService::GenerationService(const ServeOptions& options, ModelRoster& roster,
                                     EventLoop& loop, Events events, const Clock& clock)
    : shares_prefixes_(options.is_cache_shared),
      looks_up_prefixes_(options.has_prefix_cache),
      loop_(loop),
      clock_(clock),
      limits_(AdmissionOptions{}),
      replies_at_once_(options.replies_at_once),
      replies_waiting_most_(options.replies_waiting_most),
      queue_budget_(options.admission.queue_budget),
      wait_most_(options.deadline),
      decoders_(options, roster, loop, decoder_events(std::move(events)), clock),
      prompts_(options.prompts_waiting_most),
      prompt_thread_([this] {
        while (const auto job = prompts_.take()) (*job)();
      }) {}

GenerationService::~GenerationService() { prompts_.close(); }

Result<std::unique_ptr<GenerationService>> GenerationService::start(const ServeOptions& options,
                                                                    ModelRoster& roster,
                                                                    EventLoop& loop, Events events,
                                                                    const Clock& clock) {
  std::unique_ptr<GenerationService> service(
      new GenerationService(options, roster, loop, std::move(events), clock));
  for (const auto& asked : options.decoders) MUSTER_TRY(service->decoders_.open(asked));
  return service;
}

ServingDecoders::Events GenerationService::decoder_events(Events events) {
  return {
      .on_notice = std::move(events.on_notice),
      .on_fatal = std::move(events.on_fatal),
      .memory_available = std::move(events.memory_available),
      .is_loading = std::move(events.is_loading),
      .on_begun = [this](ServingDecoder& decoder, StreamId stream,
                         std::uint32_t cached_count) { on_begun(decoder, stream, cached_count); },
      .on_token = [this](ServingDecoder& decoder, StreamId stream,
                         const GeneratedToken& token) { on_token(decoder, stream, token); },
      .on_finished = [this](ServingDecoder& decoder, StreamId stream,
                            FinishReason reason) { on_finished(decoder, stream, reason); },
      .on_failed = [this](ServingDecoder& decoder, StreamId stream, const Error& error,
                          bool was_given) { on_failed(decoder, stream, error, was_given); },
      .reply_count = [this](const ServingDecoder& decoder) { return reply_count(decoder); },
      .fail_calls = [this](const ServingDecoder& decoder,
                           const Error& error) { fail_all(error, &decoder); }};
}

GenerationStatus GenerationService::status() const {
  auto status = counts_;
  for (const auto& decoder : decoders_.all()) {
    status.running_count += decoder->fleet->running_count();
    status.waiting_count += decoder->fleet->waiting_count() + unsent_count(*decoder);
  }
  return status;
}

std::size_t GenerationService::reply_count(const ServingDecoder& decoder) const {
  std::size_t count = 0;
  for (const auto& [id, call] : calls_) {
    if (call.decoder == &decoder) count += open_count(call);
  }
  return count;
}

std::uint32_t GenerationService::length_max(const std::string& name) const {
  const auto found = decoders_.find(name);
  const auto* const decoder = std::get_if<ServingDecoder*>(&found);
  return decoder == nullptr ? 0 : (*decoder)->length_max();
}

void GenerationService::reconfigure(const ServeOptions& options,
                                    std::map<std::string, CallerLimits> limits) {
  limits_.set_limits(std::move(limits));
  replies_waiting_most_ = options.replies_waiting_most;
  queue_budget_ = options.admission.queue_budget;
  wait_most_ = options.deadline;
  for (auto& [id, call] : calls_) call.timer->set(due(call));
  decoders_.set_drain_limit(options.drain_limit);
}

}  // namespace muster
