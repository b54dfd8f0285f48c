#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cache/vector_cache.h"
#include "coordinator/fleet.h"
#include "net/event_loop.h"
#include "scheduler/admission.h"
#include "serving/flight_table.h"
#include "serving/model_roster.h"
#include "serving/serve_options.h"
#include "spec/serving.h"
#include "spec/truncation_side.h"

namespace muster {

/// What all requests for computation have in common.
struct CallOptions {
  std::string model = {};                 // a served name; empty: the first one of the right task
  std::string caller = {};                // the name of an API key; empty without keys
  std::optional<Duration> deadline = {};  // from now; nullopt: the server's
  std::optional<Lane> lane = {};          // nullopt: interactive up to 8 texts, else bulk
  std::optional<bool> truncate = {};      // nullopt: the server's; false: too long is an error
  TruncationSide truncation_side = TruncationSide::Right;
};

/// Texts or token ids, one of the two.
struct EmbedCall {
  CallOptions options = {};
  std::vector<std::string> texts = {};  // valid UTF-8
  /// As the model's own tokenizer gives them: special tokens included, and nothing is added.
  std::vector<std::vector<std::uint32_t>> ids = {};
  std::optional<std::string> prompt_name = {};  // nullopt: the model's default
  /// Without `prompt_name`: the first of these that the model has; where it has none, its default.
  std::vector<std::string> prompts_preferred = {};
  /// What the caller will cut the rows to; the answer has whole rows. More than the model has is
  /// refused before anything is computed.
  std::optional<std::uint32_t> dimensions = {};
  /// Rows of their own length are asked for: a model that scales its rows to length 1 refuses.
  bool wants_own_length = false;
};

struct EmbedAnswer {
  std::string model = {};  // the served name
  std::uint32_t dim = 0;
  std::vector<float> rows = {};    // [texts, dim], row-major
  bool is_normalized = false;      // the model itself scales its rows to length 1
  std::uint64_t token_count = 0;   // special tokens included; those of cached texts too
  std::uint32_t cached_count = 0;  // texts answered from the cache
};

struct RerankCall {
  CallOptions options = {};
  std::string query = {};
  std::vector<std::string> queries = {};  // instead of `query`: one for each text
  std::vector<std::string> texts = {};
  bool raw_scores = false;  // without the model's activation
};

struct RerankAnswer {
  std::string model = {};
  std::vector<float> scores = {};  // [texts], in their order
  std::uint64_t token_count = 0;
};

/// Texts as the model's tokens, or token ids as text: one of the two.
struct TokenizeCall {
  CallOptions options = {};                     // no model: the first one, of whichever task
  std::optional<std::string> prompt_name = {};  // nullopt: the model's default
  std::vector<std::string> texts = {};          // valid UTF-8
  bool has_special_tokens = true;               // false: without those around a text
  bool wants_pieces = false;                    // what each token stands for, too
  std::vector<std::vector<std::uint32_t>> ids = {};
  bool skips_special_tokens = true;  // of ids
};

/// What one token stands for.
struct TokenPiece {
  std::string text = {};  // as the tokenizer decodes the token alone
  bool is_special = false;
};

struct TokenizedText {
  std::vector<std::uint32_t> ids = {};
  bool is_truncated = false;
  std::vector<TokenPiece> pieces = {};  // one for each id, where they were asked for
  std::string text = {};                // of ids that were given
};

struct TokenizeAnswer {
  std::string model = {};
  std::vector<TokenizedText> texts = {};  // in their order
};

/// What in a call is wrong, where it is known; it lets the API name the offending field.
enum class CallField : std::uint8_t {
  Other,
  TokenIds,      // not those of the model's tokenizer
  Dimensions,    // more than the model has
  Normalize,     // rows of their own length, of a model that has none
  Prompt,        // what is to be continued, for the model's template or tokenizer
  PromptLength,  // it leaves no room for a reply
  LogitBias,     // of a token that the model does not have
  Choices,       // more replies than its caller may have at once
};

/// Why a call was not done: an Error, and when to come again for one that the server cannot take
/// now (ResourceExhausted, Unavailable).
struct CallError {
  Error error;
  std::optional<Duration> retry_after = {};
  CallField field = CallField::Other;
};

/// One served model as it is now.
struct ServedModelStatus {
  ModelId id = 0;
  std::string name = {};
  std::string path = {};
  ModelTask task = ModelTask::Embed;
  ModelState state = ModelState::Loading;  // Ready when one device is
  std::string reason = {};                 // of Failed and Drained
  std::uint32_t dim = 0;
  std::uint32_t length_max = 0;
  std::uint32_t vocab_size = 0;
  std::vector<std::string> prompts = {};
  std::string default_prompt = {};
  EncoderFamily family = EncoderFamily::Bert;
  std::string hash = {};  // of its files, as model_hash has it
  Pooling pooling = Pooling::Mean;
  bool normalize = false;
  Precision precision = Precision::Fp32;
  std::string precision_reason = {};
  std::string equality_class = {};
  double created_unix_seconds = 0;
  std::uint64_t request_count = 0, text_count = 0, token_count = 0;
};

/// Counters and latencies since the start; for metrics and statistics.
struct ServiceStatus {
  std::uint64_t request_count = 0;  // let in
  std::uint64_t refused_count = 0;  // 429 of the queue
  std::uint64_t limited_count = 0;  // 429 of a caller's own limits
  std::uint64_t failed_count = 0;
  std::uint64_t cancelled_count = 0;
  std::uint64_t expired_count = 0;  // past their deadline
  std::uint64_t text_count = 0;
  std::uint64_t token_count = 0;
  std::uint64_t shared_count = 0;  // texts that shared another's computation (single flight)
  std::uint64_t waiting_call_count = 0;
  static constexpr std::array<double, 14> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                  0.25,  0.5,    1,     2.5,  5,     10,   30};
  std::array<std::uint64_t, kBounds.size() + 1> latency_counts{};  // seconds of answered calls
  double latency_seconds = 0;
  CacheStatus cache;
  bool is_draining = false;
};

/// What a client asks for. A call is answered exactly once by `on_done`, unless it is cancelled.
/// What is cancelled before a device has it is not computed. Texts that are equal and in flight at
/// the same time are computed once.
class InferenceCalls {
 public:
  virtual ~InferenceCalls() = default;

  /// A call has come and is about to be read: where the last one was not answered from the cache
  /// alone, an idle worker is woken meanwhile.
  virtual void expect_call() = 0;

  /// `on_done` may be called before this returns (cache, refusal). The id is for `cancel`.
  virtual CallId embed(EmbedCall call,
                       std::function<void(std::variant<EmbedAnswer, CallError>)> on_done) = 0;
  virtual CallId rerank(RerankCall call,
                        std::function<void(std::variant<RerankAnswer, CallError>)> on_done) = 0;
  /// The client has gone. Unknown ids are ignored.
  virtual void cancel(CallId id) = 0;

  /// It needs no device and waits in no queue for one; a caller's limits on requests hold.
  virtual CallId tokenize(TokenizeCall call,
                          std::function<void(std::variant<TokenizeAnswer, CallError>)> on_done) = 0;

  /// What a caller with limits has left of them; nullopt: he has none per minute.
  virtual std::optional<CallerUsage> usage_of(const std::string& caller) const = 0;
};

/// The models that are served.
class ServedModels {
 public:
  virtual ~ServedModels() = default;

  virtual std::vector<ServedModelStatus> models() const = 0;
  /// Values of a row of a model that embeds (no name: the first one); 0: there is none. It is
  /// cheap: each call may ask.
  virtual std::uint32_t row_size(std::string_view model) const = 0;
  /// Reads it on a thread of its own; `on_done` when a device has it or none can.
  virtual void load_model(const ServedModel& model,
                          std::function<void(Result<ServedModelStatus>)> on_done) = 0;
  /// New calls are told NotFound; those in flight still get their answers. Whoever waits for it to
  /// be loaded is told that it was unloaded.
  virtual Status unload_model(const std::string& name) = 0;

  /// Names and number of all models of the server, those that generate included.
  virtual ModelRoster& roster() = 0;
};

/// The devices that serve them.
class ServedFleet {
 public:
  virtual ~ServedFleet() = default;

  /// The devices and what waits for them, as they are now.
  virtual FleetView fleet() const = 0;
  /// What an operator does to the devices; they are numbered as in `fleet`.
  virtual FleetAdmin& fleet_admin() = 0;
  /// As FleetPlacement::set_readings.
  virtual void set_readings(std::size_t device, const DispatchDevice& readings) = 0;
};

/// What the server around it asks of the service as a whole.
class ServiceControl {
 public:
  virtual ~ServiceControl() = default;

  virtual ServiceStatus status() const = 0;

  /// Forgets every cached vector, those of the cache's file too.
  virtual void clear_cache() = 0;

  /// Called about once a second: has the cache's file catch up after an error, and returns why it
  /// is behind; nullopt: it is not.
  virtual std::optional<Error> tend_cache() = 0;

  /// Changes what may change while running: dispatch, admission, limits of callers, deadlines.
  virtual void reconfigure(const ServeOptions& options,
                           std::map<std::string, CallerLimits> limits) = 0;

  /// True when at least one device has at least one model, and it is not draining.
  virtual bool is_ready() const = 0;

  /// New calls are refused with Unavailable; `on_done` when none is left or the drain limit is
  /// over.
  virtual void drain(std::function<void()> on_done) = 0;
};

/// Models, cache, admission, tokenizers and the fleet of a server, on one event loop. Each side is
/// an interface for those who need no other.
///
/// Threads: every method belongs to the loop's thread, and callbacks come on it.
class InferenceService : public InferenceCalls,
                         public ServedModels,
                         public ServedFleet,
                         public ServiceControl {
 public:
  struct Events {
    /// A sentence for the log; device is set when it is about one (or its worker said it).
    std::function<void(const std::string&, std::optional<std::string> device)> on_notice;
    /// Nothing can be served any more: workers of another build.
    std::function<void(const Error&)> on_fatal;
    /// Asked while `start` waits for workers and for a measurement: true ends it with Cancelled.
    std::function<bool()> is_cancelled = {};
  };

  /// Starts workers and loading. Precision is measured once for each model and processor, which
  /// blocks for seconds the first time.
  ///
  /// Errors: those of finding and reading the models, of the cache file, of starting workers.
  static Result<std::unique_ptr<InferenceService>> start(const ServeOptions& options,
                                                         EventLoop& loop, Events events,
                                                         const Clock& clock);
};

}  // namespace muster
