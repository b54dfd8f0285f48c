#pragma once

#include <string>

#include "base/result.h"
#include "net/http_client.h"

namespace muster {

/// Where a running server is, and what it wants to see.
struct ServerAccess {
  std::string url;  // "http://127.0.0.1:8000"
  HttpClientOptions http = {};
  HttpHeaders headers = {};  // of every request: the key, the type of the body
};

/// The sentence of an error body `{"error": {"message"}}`, else the body itself, cut short.
std::string server_message(const std::string& body);

/// What a status means, with the server's own sentence: 404 NotFound, 422 Unsupported, 429
/// ResourceExhausted, 503 Unavailable, 504 DeadlineExceeded, other 5xx Internal, all else
/// InvalidArgument.
Error server_error(int status, const std::string& body);

}  // namespace muster
