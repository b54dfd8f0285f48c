#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/inbox.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "scheduler/admission.h"
#include "serving/decoder_reply.h"
#include "serving/generation_call.h"
#include "serving/serve_options.h"
#include "serving/serving_decoder.h"
#include "serving/serving_decoders.h"

namespace muster {

/// Calls for replies on the decoders of a server: prompts to ids, on a thread of their own; streams
/// to the workers; tokens back to text.
///
/// A call is let in unless too many wait for a device (429), its decoder is being loaded (503), or
/// its caller's own limits say no; these count apart from those of vectors. A client that goes is
/// cancelled within a step of the worker.
///
/// Threads: every method belongs to the loop's thread, and callbacks come on it.
class GenerationService {
 public:
  struct Events {
    /// A sentence for the log; device is set when it is about one.
    std::function<void(const std::string&, std::optional<std::string> device)> on_notice;
    /// Workers of another build.
    std::function<void(const Error&)> on_fatal;
    /// As ServingDecoders::Events::memory_available.
    std::function<std::optional<std::uint64_t>()> memory_available = {};
  };

  /// Starts the workers of `options.decoders`, one for each CPU of each; they load while the caller
  /// goes on. roster: of the whole server; it outlives this.
  ///
  /// Errors: those of ServingDecoders::open.
  static Result<std::unique_ptr<GenerationService>> start(const ServeOptions& options,
                                                          ModelRoster& roster, EventLoop& loop,
                                                          Events events, const Clock& clock);
  ~GenerationService();

  CallId generate(GenerationCall call, GenerationSink events);

  /// The client has gone. Unknown ids are ignored.
  void cancel(CallId id);

  /// The server ends: whoever still waits for the end of a reply is told Unavailable.
  void give_up();

  /// Which decoders there are, and what is done to them and to their devices.
  ServingDecoders& decoders() { return decoders_; }
  const ServingDecoders& decoders() const { return decoders_; }

  std::vector<ServedDecoderStatus> models() const { return decoders_.served(); }
  bool has_model(std::string_view name) const { return decoders_.has(name); }
  GenerationStatus status() const;
  bool is_ready() const { return decoders_.is_ready(); }
  void set_limits(std::map<std::string, CallerLimits> limits);

  /// What a caller with limits has left of them; nullopt: he has none per minute.
  std::optional<CallerUsage> usage_of(const std::string& caller) const {
    return limits_.usage_of(caller, clock_.now());
  }

 private:
  struct Call {
    ServingDecoder* decoder = nullptr;
    /// Held here alone until it is ids, so that a call that is cancelled leaves no text behind.
    std::shared_ptr<const GenerationCall> asked;
    std::shared_ptr<const GenerationSink> events;  // shared: it may end from within
    AdmissionRequest admitted;
    GenerationUsage usage;
    DecoderReply reply;
    std::optional<StreamId> stream;  // once it is with the fleet
    TimePoint asked_at;
    std::optional<TimePoint> token_at;  // the last one
  };

  GenerationService(const ServeOptions& options, ModelRoster& roster, EventLoop& loop,
                    Events events, const Clock& clock);
  ServingDecoders::Events decoder_events(Events events);
  std::optional<CallError> admit(Call& call);
  Duration retry_after(const ServingDecoder& decoder) const;
  static CallError no_device(const ServingDecoder& decoder);
  std::size_t unsent_count(const ServingDecoder& decoder) const;
  void prepare(CallId id, const Call& call);
  void on_prepared(CallId id, Result<std::vector<std::uint32_t>> ids);
  void on_token(ServingDecoder& decoder, StreamId stream, const GeneratedToken& token);
  void on_finished(ServingDecoder& decoder, StreamId stream, FinishReason reason);
  void on_failed(ServingDecoder& decoder, StreamId stream, const Error& error, bool was_given);
  void end(CallId id, FinishReason reason);
  void fail(CallId id, const CallError& error, bool is_computed = false);
  void fail_all(const Error& error, const ServingDecoder* of_decoder = nullptr);
  Call take(CallId id, bool is_computed);

  EventLoop& loop_;
  const Clock& clock_;
  Admission limits_;
  ServingDecoders decoders_;
  std::map<CallId, Call> calls_;
  CallId next_call_ = 1;
  GenerationStatus counts_;
  Inbox<std::function<void()>> prompts_;
  std::atomic<bool> is_ending_ = false;
  std::jthread prompt_thread_;  // the last member: it ends first
};

}  // namespace muster
