#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/server_access.h"
#include "client/server_api.h"
#include "scheduler/batch_queue.h"

namespace muster {

/// A text on its way to a server.
struct RemoteText {
  ItemKey key = 0;
  std::string text;
};

/// What became of it: a row, or why there is none.
struct RemoteResult {
  ItemKey key = 0;
  Tokenizer::Encoded tokens;
  std::string row;  // [dim] float32 as bytes
  std::optional<Error> failure;
};

/// What a caller needs from its owner, and tells it.
struct ServerCallerHooks {
  std::function<bool(Duration)> wait;  // false: the run ends
  /// The server cannot be reached, or cannot work for now: each time that it is asked again.
  std::function<void(const Error&)> on_trouble;
  std::function<void()> on_well;  // it has the model, and answers
};

/// Asks a server over one connection, and again where that can help: after `Retry-After` when it
/// refuses for now (429, 503), and with a back-off that doubles when it cannot be reached or gives
/// up on a deadline.
///
/// Threads: not thread-safe; calls block.
class ServerCaller {
 public:
  /// Errors: those of HttpClient::open.
  static Result<ServerCaller> open(const ServerAccess& access, Duration first_wait,
                                   ServerCallerHooks hooks);

  /// What the server says of a model, once it is ready.
  ///
  /// Errors: NotFound, Unavailable (it cannot load it, all of its devices are drained, or it cannot
  /// be reached), Cancelled.
  Result<ListedModel> wait_for_model(const std::string& name);

  /// The rows of some texts. Where the server cannot do one of them, it is asked for each alone, so
  /// that only that one fails.
  ///
  /// Errors: Unavailable when the server cannot be reached, refuses for long, or computes otherwise
  /// than `model` now; what it says of its key or its model; Cancelled.
  Result<std::vector<RemoteResult>> compute(const ListedModel& model, const std::string& prompt,
                                            std::span<const RemoteText> texts);

 private:
  ServerCaller(std::unique_ptr<HttpClient> http, const ServerAccess& access, Duration first_wait,
               ServerCallerHooks hooks);

  /// The same, or that it is drained.
  Result<ListedModel> settled_model(const std::string& name);
  Result<HttpAnswer> ask(std::string_view method, const std::string& target,
                         const std::string& body);
  Result<std::vector<RemoteResult>> read_rows(const HttpAnswer& answer, const ListedModel& model,
                                              const std::string& prompt,
                                              std::span<const RemoteText> texts);

  std::unique_ptr<HttpClient> http_;
  std::string url_;
  HttpHeaders headers_;
  Duration first_wait_;
  ServerCallerHooks hooks_;
};

}  // namespace muster
