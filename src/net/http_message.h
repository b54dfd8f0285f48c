#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// The value of the first header of a name, whatever its case.
std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name);

/// What a client asked for.
struct HttpRequest {
  std::string method;  // "GET", as it came
  std::string path;    // "/metrics": the target before '?', as it came
  std::string query;   // after '?', without it
  HttpHeaders headers;
  std::string body;
  bool wants_keep_alive = true;
  bool is_http10 = false;  // its client does not know chunks
  std::string peer;        // "127.0.0.1:51234", "[::1]:51234", "unix:1000" (the user's id)
  // It came from this machine; over a Unix socket, from the server's own user or root.
  bool is_loopback_peer = false;
  std::string client_name;       // the common name of a verified client certificate; else empty
  std::shared_ptr<void> judged;  // what was found out by the head (HttpServerOptions::on_head)

  /// The first header of a name, whatever its case.
  std::optional<std::string_view> header(std::string_view name) const;
};

/// What it gets. Content-Length, Date and Connection are added.
struct HttpResponse {
  int status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";  // a literal of the program
  std::string body;
  HttpHeaders headers = {};
};

/// "Not Found" of 404; "Status" for a code without a name here. Source: RFC 9110, section 15.
std::string_view http_status_text(int status);

/// Where the body of an answer ends, as its head says.
enum class HttpFraming : std::uint8_t {
  Length,  // Content-Length: the body is there
  Chunks,  // Transfer-Encoding: chunked
  Close,   // with the connection
};

/// Appends the bytes of a response on the wire, but for its body.
///
/// date: as RFC 9110, section 5.6.7, writes it. Threads: pure.
void append_response_head(std::string& out, const HttpResponse& response, HttpFraming framing,
                          bool keeps_alive, std::string_view date);

/// Appends `bytes`, one at least, as a chunk. Source: RFC 9112, section 7.1. Threads: pure.
void append_chunk(std::string& out, std::string_view bytes);

/// What stands behind the last chunk.
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace muster
