#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command.h"
#include "client/server_access.h"
#include "net/http_client.h"

namespace muster {

/// The flags by which a command is told of a running server: --server, --api-key-file, --ca-file,
/// --client-cert, --client-key. server_help: what the first one does.
FlagGroup server_flags(
    const std::string& server_help =
        "where it is, as http://HOST:PORT or unix:PATH (default: http://127.0.0.1:8000)");

/// What those flags say, and MUSTER_API_KEY where no file holds the key.
///
/// Errors: NotFound (no such key file), InvalidArgument (no key in it, or what is no key).
Result<ServerAccess> server_access(const CommandContext& context);

/// A connection to the server that the command names, with what it needs to be let in.
struct ServerClient {
  std::unique_ptr<HttpClient> http;
  HttpHeaders headers;      // of every request
  bool is_assumed = false;  // the command does not say where the server is
  bool is_here = false;     // on this machine: at a Unix socket or an address of its own

  /// answer_limit: of a call; nullopt: as HttpClientOptions has it.
  /// Errors: those of HttpClient::open, NotFound (no such key file).
  static Result<ServerClient> open(const CommandContext& context,
                                   std::optional<Duration> answer_limit = std::nullopt);

  /// Sends a JSON body (empty: none) and gives the answer of a 2xx.
  ///
  /// Errors: those of HttpClient::call; what the server says otherwise, with the id under which its
  /// log has the request, by its status: 400 InvalidArgument, 401 and 403 InvalidArgument, 404
  /// NotFound, 422 Unsupported, 429 ResourceExhausted, 503 Unavailable, 504 DeadlineExceeded.
  Result<std::string> call(std::string_view method, std::string_view target,
                           const std::string& body = {});
};

}  // namespace muster
