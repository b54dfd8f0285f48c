#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "service/inference_service.h"
#include "telemetry/collector.h"

namespace muster {

/// What the program around the server does for it.
struct ServerHooks {
  /// Effective settings as JSON, `{"name": {"value", "source", "is_live"}}`, secrets left out.
  std::function<std::string()> config_json;
  /// Changes settings while running, all of them or none: name -> value.
  ///
  /// Errors: InvalidArgument for an unknown name or value, or one that needs a restart.
  std::function<Status(const std::map<std::string, std::string>&)> change_config;
  /// What planning recommends for a model on the server's devices, as a JSON object with at least
  /// "recommended_device" (a name or null), "because", "devices" and "hardware".
  ///
  /// Errors: those of reading the model's files and of planning. Threads: called on another one
  /// than the loop's; what it holds outlives the server.
  std::function<Result<std::string>(const ServedModelStatus&)> recommendation_json;
};

/// The REST API: validates, authenticates, limits, calls the service, and shows what it does. The
/// routes are those of openapi.yaml, which it serves itself at /openapi.yaml.
///
/// Threads: belongs to the loop's thread.
class Server {
 public:
  /// Listens at once; /readyz says 503 until a model is ready.
  ///
  /// collector: what watches the devices; nullptr: their readings are absent. It, `service` and
  /// `loop` outlive the server.
  /// Errors: those of HttpServer::start and of the keys file and the audit log.
  static Result<std::unique_ptr<Server>> start(const ServeOptions& options,
                                               InferenceService& service, Collector* collector,
                                               EventLoop& loop, ServerHooks hooks,
                                               const Clock& clock);
  virtual ~Server() = default;

  virtual std::uint16_t port() const = 0;

  /// Reads the keys file, certificate and limits again; on an error nothing is changed.
  virtual Status reload(const ServeOptions& options) = 0;

  /// The server is to end: idle connections are closed now, the others with their answer.
  virtual void begin_drain() = 0;
};

}  // namespace muster
