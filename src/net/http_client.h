#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "net/http_message.h"
#include "net/tls_options.h"

namespace muster {

/// Where a server is: "http://127.0.0.1:8000", "https://[::1]:8443/base", "http://name",
/// "unix:/run/muster.sock".
struct HttpUrl {
  bool is_tls = false;
  std::string unix_path;  // of a Unix socket; host and port are then empty
  std::string host;       // without brackets
  std::uint16_t port = 0;
  std::string path;  // before every target, without a slash at its end; often empty

  /// "127.0.0.1:8000", "[::1]:8443", "unix:/run/muster.sock".
  std::string address() const;
};

/// Errors: InvalidArgument, with an example of the right form. Threads: pure.
Result<HttpUrl> parse_http_url(std::string_view text);

struct HttpClientOptions {
  Duration connect_limit = std::chrono::seconds(5);   // with the handshake of TLS
  Duration answer_limit = std::chrono::seconds(120);  // from a request's first byte to its answer
  std::uint64_t body_bytes = 1ULL << 30;              // of an answer
  TlsClientOptions tls = {};                          // for https
  int cancel_fd =
      -1;  // borrowed; once readable, the call under way and each later one is Cancelled
};

struct HttpAnswer {
  int status = 0;
  HttpHeaders headers;
  std::string body;

  /// The first header of a name, whatever its case.
  std::optional<std::string_view> header(std::string_view name) const;
};

/// Asks one server, one request at a time, over a connection that is kept between requests.
///
/// Threads: not thread-safe; a call blocks.
class HttpClient {
 public:
  /// Connects with the first call.
  ///
  /// Errors: those of parse_http_url, and of the files for TLS.
  static Result<std::unique_ptr<HttpClient>> open(std::string_view url,
                                                  const HttpClientOptions& options = {});
  virtual ~HttpClient() = default;

  /// target: "/v1/models". Host, Content-Length and Connection are added. Whatever the status, an
  /// answer is an answer.
  ///
  /// Errors: Unavailable (nobody listens, the server went, its certificate is not trusted), with
  /// the address; NotFound (no such host); DeadlineExceeded; Corrupt (it does not speak HTTP);
  /// ResourceExhausted (a longer answer than `body_bytes`); Cancelled (`cancel_fd`).
  virtual Result<HttpAnswer> call(std::string_view method, std::string_view target,
                                  const HttpHeaders& headers = {}, std::string_view body = {}) = 0;
};

}  // namespace muster
