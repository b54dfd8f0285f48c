#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "log/log_line.h"
#include "net/event_loop.h"
#include "serving/generation_service.h"
#include "serving/inference_service.h"
#include "telemetry/collector.h"

namespace muster {

/// What a request asks to be changed, and who asks.
struct SettingsChange {
  std::map<std::string, std::string> values = {};  // by name
  std::string asker = {};                          // for the log: a key's name, else an address
  std::string request_id = {};
};

/// What the program around the server does for it.
struct ServerHooks {
  /// Effective settings as JSON, `{"name": {"value", "source", "is_live"}}`, secrets left out, and
  /// the places of this machine, too, unless they are asked for.
  std::function<std::string(bool shows_places)> config_json;
  /// Changes settings while running, all of them or none.
  ///
  /// Errors: InvalidArgument for an unknown name or value, or one that needs a restart or that no
  /// request sets.
  std::function<Status(const SettingsChange&)> change_config;
  /// Writes a line of the server's log. Threads: the loop's.
  std::function<void(const LogLine&)> log = {};
  /// Lines of it that could not be written. Threads: the loop's.
  std::function<std::uint64_t()> log_lost_count = {};
  /// What planning recommends for a model on the server's devices, as a JSON object with at least
  /// "recommended_device" (a name or null), "because", "devices" and "hardware".
  ///
  /// Errors: those of reading the model's files and of planning. Threads: called on another one
  /// than the loop's; what it holds outlives the server.
  std::function<Result<std::string>(const ServedModelStatus&)> recommendation_json;
};

/// What a server answers from.
struct ServedWork {
  InferenceService& service;
  GenerationService& generation;
  Collector* collector = nullptr;  // nullptr: readings of devices are absent
};

/// The REST API: validates, authenticates, limits, calls the service, and shows what it does. The
/// routes are those of openapi.yaml, which it serves itself at /openapi.yaml.
///
/// Threads: belongs to the loop's thread.
class Server {
 public:
  /// Listens at once; /readyz says 503 until all models of the start are there.
  ///
  /// What `work` names, and `loop`, outlive the server.
  /// Errors: those of HttpServer::start and of the keys file and the audit log.
  static Result<std::unique_ptr<Server>> start(const ServeOptions& options, const ServedWork& work,
                                               EventLoop& loop, ServerHooks hooks,
                                               const Clock& clock);
  virtual ~Server() = default;

  virtual std::uint16_t port() const = 0;

  /// Keys that it lets in; nullopt: there is no keys file.
  virtual std::optional<std::size_t> key_count() const = 0;

  /// Puts what a request may change into force; no file is read.
  virtual void apply(const ServeOptions& options) = 0;

  /// Reads the keys file, certificate and limits again; on an error nothing is changed.
  virtual Status reload(const ServeOptions& options) = 0;

  /// The server is to end: idle connections are closed now, the others with their answer; what asks
  /// for work is told 503. `on_sent` is called once, when every answer that was begun has been
  /// taken by its client's system and no request waits for one.
  virtual void begin_drain(std::function<void()> on_sent) = 0;

  /// Whoever still waits for an answer is told 503.
  virtual void give_up() = 0;
};

}  // namespace muster
