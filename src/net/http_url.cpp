// URLs of servers, far stricter than RFC 3986: a user name, a query or a fragment has no meaning
// here and is refused, and so is any byte that could break the request line it is put into. A
// path at the end is kept as a prefix, without its slash.

#include <fmt/format.h>

#include <charconv>

#include "net/http_client.h"
#include "net/unix_socket.h"

namespace muster {
namespace {

constexpr std::string_view kPlain = "http://";
constexpr std::string_view kTls = "https://";
constexpr std::string_view kUnix = "unix:";
constexpr std::uint16_t kPlainPort = 80;
constexpr std::uint16_t kTlsPort = 443;

Error wrong(std::string_view text) {
  return {ErrorKind::InvalidArgument,
          fmt::format("\"{}\" is no server's URL; an example is http://127.0.0.1:8000, another "
                      "unix:/run/muster.sock",
                      text)};
}

}  // namespace

std::string HttpUrl::address() const {
  if (!unix_path.empty()) return fmt::format("{}{}", kUnix, unix_path);
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

Result<HttpUrl> parse_http_url(std::string_view text) {
  HttpUrl url;
  if (text.starts_with(kUnix)) {
    url.unix_path = text.substr(kUnix.size());
    MUSTER_TRY(unix_address(url.unix_path));
    return url;
  }
  url.is_tls = text.starts_with(kTls);
  if (!url.is_tls && !text.starts_with(kPlain)) return wrong(text);
  const auto rest = text.substr(url.is_tls ? kTls.size() : kPlain.size());
  // A query, a fragment, a user's name, or what would break a request's line.
  for (const char letter : rest) {
    if (letter <= ' ' || letter > '~' || letter == '?' || letter == '#' || letter == '@') {
      return wrong(text);
    }
  }
  const auto slash = std::min(rest.find('/'), rest.size());
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  auto authority = rest.substr(0, slash);
  const bool is_bracketed = authority.starts_with('[');
  const auto host_end = is_bracketed ? authority.find(']') : authority.find(':');
  if (is_bracketed && host_end == std::string_view::npos) return wrong(text);
  url.host = is_bracketed ? authority.substr(1, host_end - 1) : authority.substr(0, host_end);
  if (url.host.empty()) return wrong(text);
  authority.remove_prefix(std::min(authority.size(), host_end == std::string_view::npos
                                                         ? authority.size()
                                                         : host_end + is_bracketed));
  url.port = url.is_tls ? kTlsPort : kPlainPort;
  if (authority.empty()) return url;
  const auto* const end = authority.data() + authority.size();
  const auto parsed = std::from_chars(authority.data() + 1, end, url.port);
  if (authority.front() != ':' || parsed.ec != std::errc() || parsed.ptr != end || url.port == 0) {
    return wrong(text);
  }
  return url;
}

}  // namespace muster
