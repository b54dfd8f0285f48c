#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "scheduler/admission.h"
#include "serving/decoder_reply.h"
#include "serving/generation_call.h"
#include "serving/prompt_queue.h"
#include "serving/serve_options.h"
#include "serving/serving_decoder.h"
#include "serving/serving_decoders.h"
#include "serving/shown_tokens.h"

namespace muster {

/// Calls for replies on the decoders of a server: prompts to ids, on a thread of their own, callers
/// in turns; streams to the workers; tokens back to text.
///
/// A call is let in unless too many replies wait for a device or it would wait for longer than the
/// queue budget or too many prompts wait to be read (429), its decoder is being loaded (503), or
/// its caller's own limits say no; these count apart from those of vectors. A caller of whom some
/// wait leaves as much room as they take, and callers' replies take turns. Each of a call's replies
/// is a stream of its own, that goes on when its worker dies. Where one of them fails, so does the
/// call, and the others are cancelled. A client that goes is cancelled within a step of the
/// workers, and so is one past its deadline.
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
    /// As ServingDecoders::Events::is_loading.
    std::function<bool(std::size_t device)> is_loading = {};
  };

  /// Starts the workers of `options.decoders`, one for each CPU of each; they load while the caller
  /// goes on. What is to be measured first is measured once the loop runs. roster: of the whole
  /// server; it outlives this.
  ///
  /// Errors: those of ServingDecoders::open.
  static Result<std::unique_ptr<GenerationService>> start(const ServeOptions& options,
                                                          ModelRoster& roster, EventLoop& loop,
                                                          Events events, const Clock& clock);
  ~GenerationService();

  /// With the same prompt, settings and seed the replies are the same again, and the first is that
  /// of a call for one.
  CallId generate(GenerationCall call, GenerationSink events);

  /// Calls of one request, to one model and with as many choices each: all are let in, or none, and
  /// it is the first one that is told so. calls: from one on; events: of each. ids: of each,
  /// written before anything is told; it outlives this.
  void generate_all(std::vector<GenerationCall> calls, std::vector<GenerationSink> events,
                    std::vector<CallId>& ids);

  /// The client has gone. Unknown ids are ignored.
  void cancel(CallId id);

  /// The server ends: whoever still waits for the end of a reply is told Unavailable.
  void give_up();

  /// Which decoders there are, and what is done to them and to their devices.
  ServingDecoders& decoders() { return decoders_; }
  const ServingDecoders& decoders() const { return decoders_; }

  std::vector<ServedDecoderStatus> models() const { return decoders_.served(); }
  bool has_model(std::string_view name) const { return decoders_.has(name); }
  /// Tokens of a prompt and its reply at most; 0: no model that generates has this name.
  std::uint32_t length_max(const std::string& name) const;
  GenerationStatus status() const;
  bool is_ready() const { return decoders_.is_ready(); }
  /// Changes what may change while running: limits of callers, the queue budget, the limit of
  /// requests that name none, the drain limit.
  void reconfigure(const ServeOptions& options, std::map<std::string, CallerLimits> limits);

  /// What a caller with limits has left of them; nullopt: he has none per minute.
  std::optional<CallerUsage> usage_of(const std::string& caller) const {
    return limits_.usage_of(caller, clock_.now());
  }

 private:
  /// One of the replies.
  struct Choice {
    DecoderReply reply;
    ShownTokens shown;
    std::optional<StreamId> stream = {};     // while it is with the fleet
    std::optional<TimePoint> token_at = {};  // the last one
    std::uint32_t token_count = 0;
    double logprob_sum = 0;
    bool has_begun = false;  // what is told before its first token was told
    bool is_over = false;
  };
  struct Call {
    ServingDecoder* decoder = nullptr;
    /// Held here alone until it is ids, so that a call that is cancelled leaves no text behind.
    std::shared_ptr<const GenerationCall> asked;
    std::shared_ptr<const GenerationSink> events;  // shared: it may end from within
    AdmissionRequest admitted;
    GenerationUsage usage;
    std::vector<Choice> choices;
    std::uint32_t choice_count = 1;  // that are wanted
    bool shows_logprobs = false;
    std::size_t sent_count = 0;  // of the choices, that are with the fleet or were
    StreamRequest request = {};  // of those that are not
    bool has_begun = false;      // a worker has begun with one of its replies
    std::string echo = {};       // what each reply begins with
    /// The first token of a prompt that is scored: it comes with the echo, and before all others.
    std::optional<std::uint32_t> scored_first = {};
    bool is_echoed = false;    // that has come
    ShownTokens shown_prompt;  // the tokens of a prompt that is scored
    std::size_t echo_at = 0;   // bytes of the echo that these have stood for
    TimePoint asked_at;
    std::optional<Duration> deadline = {};  // since then
    std::unique_ptr<EventLoop::Timer> timer = {};

    bool is_ranked() const { return choices.size() > choice_count; }
  };
  /// A prompt, read on the thread beside the loop.
  struct Prepared {
    Result<std::vector<std::uint32_t>> ids;
    std::string echo = {};
  };

  GenerationService(const ServeOptions& options, ModelRoster& roster, EventLoop& loop,
                    Events events, const Clock& clock);
  ServingDecoders::Events decoder_events(Events events);
  std::variant<std::vector<Call>, CallError> make_calls(std::vector<GenerationCall> asked);
  static AdmissionRequest charge_of(const Call& call);
  std::optional<CallError> admit(std::span<Call> calls);
  std::optional<CallError> ask_queue(const Call& call, std::size_t count) const;
  std::optional<CallError> ask_wait(const ServingDecoder& decoder, std::size_t place_count) const;
  std::optional<CallError> ask_prompts(std::size_t count) const;
  std::map<std::string_view, std::size_t> unplaced(const ServingDecoder& decoder) const;
  Duration retry_after(const ServingDecoder& decoder) const;
  static CallError no_device(const ServingDecoder& decoder);
  std::size_t unsent_count(const ServingDecoder& decoder) const;
  static Result<std::vector<Choice>> make_choices(const ServingDecoder& decoder,
                                                  const GenerationCall& asked);
  void prepare(CallId id, const Call& call);
  void on_prepared(CallId id, Prepared prepared);
  static FlowId flow_of(const std::string& caller);
  std::uint64_t prefix_scope(const std::string& caller) const;
  void submit(CallId id, Call& call, const GenerationCall& asked,
              const std::vector<std::uint32_t>& ids);
  static void send(CallId id, Call& call, std::size_t count);
  void on_begun(ServingDecoder& decoder, StreamId stream, std::uint32_t cached_count);
  void on_token(ServingDecoder& decoder, StreamId stream, const GeneratedToken& token);
  void on_finished(ServingDecoder& decoder, StreamId stream, FinishReason reason);
  void on_failed(ServingDecoder& decoder, StreamId stream, const Error& error, bool was_given);
  bool begin_scored(CallId id);
  bool tell_prompt(CallId id, const std::string& text, ReplyToken token);
  void on_prompt_token(StreamOwner owner, const GeneratedToken& token);
  void count_token(Call& call, Choice& choice, const GeneratedToken& token);
  void charge_so_far(Call& call);
  void end_choice(StreamOwner owner, FinishReason reason);
  static bool release(ServingDecoder& decoder, Choice& choice);
  static std::size_t open_count(const Call& call);
  std::size_t reply_count(const ServingDecoder& decoder) const;
  static std::vector<std::uint32_t> wanted(const Call& call);
  TimePoint due(const Call& call) const;
  void set_timer(CallId id, Call& call);
  void on_time(CallId id);
  void fail(CallId id, const CallError& error, bool is_computed = false);
  void fail_all(const Error& error, const ServingDecoder* of_decoder = nullptr);
  Call take(CallId id, bool is_computed);

  const bool shares_prefixes_;    // between callers
  const bool looks_up_prefixes_;  // the workers do
  EventLoop& loop_;
  const Clock& clock_;
  Admission limits_;
  std::size_t replies_at_once_;       // of a decoder, by each device
  std::size_t replies_waiting_most_;  // of a decoder
  Duration queue_budget_;             // predicted wait for a place
  Duration wait_most_;                // for one, of a call that names no deadline
  ServingDecoders decoders_;
  std::map<CallId, Call> calls_;
  CallId next_call_ = 1;
  GenerationStatus counts_;
  PromptQueue prompts_;
  std::jthread prompt_thread_;  // the last member: it ends first
};

}  // namespace muster
