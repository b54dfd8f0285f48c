#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/audit_log.h"
#include "server/http_statistics.h"
#include "server/loop_tasks.h"
#include "server/request_log.h"
#include "server/routes.h"
#include "server/server.h"
#include "serving/corpus_searches.h"
#include "serving/device_states.h"
#include "serving/step_thread.h"

namespace muster {

class Exchange;

/// What a round of canaries has shown.
struct HealthVerdict {
  int status = 503;
  std::string_view word;  // "ok", "starting", "degraded", "failed"
  TimePoint reached = {};
};

/// A request of /health. shows_workers: the caller may see more than the verdict.
struct HealthRequest {
  std::shared_ptr<Exchange> exchange;
  bool shows_workers = false;
};

/// What the routes work with.
struct ServerState {
  ServeOptions options;
  InferenceService& service;
  GenerationService& generation;
  Collector* collector;  // nullptr: devices are not watched
  EventLoop& loop;
  ServerHooks hooks;
  const Clock& clock;
  TimePoint started;
  double start_unix_seconds = 0;
  HttpServer* http = nullptr;                // once it listens
  std::shared_ptr<const ApiKeys> keys = {};  // nullptr: there is no keys file
  std::unique_ptr<AuditLog> audit = {};      // nullptr: none is kept
  HttpStatistics statistics = {};
  std::unique_ptr<CorpusSearches> searches = {};  // nullptr: there is nothing to search
  std::unique_ptr<RequestLog> log = {};           // there from the start to the end
  /// What takes longer than others should wait; there from the start to the end.
  std::unique_ptr<LoopTasks> tasks = std::make_unique<LoopTasks>(loop);
  /// Reads long bodies (read_call.h); there from the start to the end.
  std::unique_ptr<StepThread> readers = std::make_unique<StepThread>(loop);
  /// Requests of /health that wait for the one round of canaries that is under way.
  std::vector<HealthRequest> awaiting_health = {};
  std::optional<HealthVerdict> last_health = {};
  /// Makes matrix products; one at a time. Joined before the rest goes.
  std::jthread tester = {};
  std::set<std::string, std::less<>> starting = {};  // models of the start that still load
  bool is_testing = false;
  /// Requests for recommendations that wait for the one round of planning that is under way.
  std::vector<std::shared_ptr<Exchange>> awaiting_advice = {};
  /// Plans; joined before the rest goes.
  std::jthread adviser = {};
};

/// One request on its way to its answer. It is answered once; what comes later is dropped.
///
/// Threads: the loop's.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  /// Made by the head of a request; `begin` when it is whole.
  Exchange(std::shared_ptr<ServerState> state, const Route& route, std::string route_parameter,
           std::string id);
  void begin(HttpRequest&& whole, HttpRespond way_back);

  /// Instead of `begin`: the answer to one that is refused by its head.
  HttpResponse refusal(const ApiError& error, HttpRequest head);

  ServerState& state() { return *state_; }
  const Route& route() const { return route_; }

  HttpRequest request;
  std::string parameter;    // of the route
  std::string caller_name;  // of the API key; empty without keys
  /// What its key was looked for in, by the head; nullptr: there was no keys file.
  std::shared_ptr<const ApiKeys> judged_by;
  bool is_admin = false;  // it may call admin routes, and is shown paths of this machine
  std::string request_id;
  /// Instead of the route's, where the body has told which API the client speaks.
  std::optional<ErrorForm> error_form;
  // For the audit log, as far as they are known.
  std::string model;
  std::optional<std::uint64_t> text_count;
  std::optional<std::uint64_t> token_count;

  /// Who asks, for a log: "key ci", else the address.
  std::string asker() const;

  /// A line of the log: "TEXT, asked for by key ci".
  void log_event(std::string_view text, LogLevel level = LogLevel::Info) const;

  void answer(HttpResponse&& response);
  void answer(int status, const nlohmann::ordered_json& body);
  void refuse(const ApiError& error);

  // An answer in parts, as HttpRespond has it; counted when it ends.
  void begin_stream(HttpResponse&& head, std::function<void()> on_room);
  /// False: the writer should wait for `on_room`.
  bool write(std::string_view bytes);
  /// failure: told in the stream, whose status was sent before; the log and the audit name it.
  void end_stream(const ApiError* failure = nullptr);

  /// `refusal` is sent in the place of its answer, given or not: it is what is counted.
  void replace_answer(HttpResponse& refusal);
  bool is_answered() const { return is_answered_; }

  /// Until the answer, `bytes` more are held for this request. False: there is no room for them.
  bool hold(std::uint64_t bytes) const { return respond_->hold(bytes); }

  /// `cancel` is called when the client goes before its answer, or before the end of one in parts.
  void on_client_gone(std::function<void()> cancel);

 private:
  void add_headers(HttpResponse& response) const;
  void count(int status, std::uint64_t bytes_out);

  const std::shared_ptr<ServerState> state_;
  const Route& route_;
  std::uint64_t bytes_in_ = 0;
  std::string reason_;                  // of a refusal: a word of the server's own
  std::optional<HttpRespond> respond_;  // since `begin`
  TimePoint started_;
  std::uint64_t stream_bytes_ = 0;  // of an answer in parts
  bool is_answered_ = false;        // to its end
  bool is_counted_ = false;
};

/// Whether calls are taken: a device has a model that embeds, reranks or generates, and no drain.
bool takes_calls(const ServerState& state);

/// Once, when the server begins: which models it was started with.
void note_start(ServerState& state);

/// The same, and what the server was started with has loaded, has failed or waits for memory. A
/// model that is loaded later is not waited for.
bool is_ready(ServerState& state);

/// The devices with all that runs on them (serving/device_states.h).
std::vector<GroupStatus> devices_of(const ServerState& state);

/// The newest readings; without a collector none, but the time.
TelemetrySnapshot snapshot_of(const ServerState& state);

using ExchangePtr = std::shared_ptr<Exchange>;

/// As text; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace muster
