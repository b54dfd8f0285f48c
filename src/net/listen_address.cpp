#include <fmt/format.h>

#include <charconv>

#include "net/http_server.h"
#include "net/socket_address.h"

namespace muster {

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const Error wrong{
      ErrorKind::InvalidArgument,
      fmt::format("not an address to listen on: \"{}\"; it looks like 127.0.0.1:8000 or [::1]:8000",
                  text)};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong;
  auto host = text.substr(0, colon);
  const auto port = text.substr(colon + 1);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  // Without brackets it is not clear where an IPv6 address ends.
  if (host.empty() || (!has_brackets && host.find(':') != std::string_view::npos)) return wrong;
  if (host != "localhost" && !SocketAddress::parse(std::string(host))) return wrong;

  ListenAddress address;
  address.host = host;
  const auto [end, code] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (code != std::errc{} || end != port.data() + port.size()) return wrong;
  return address;
}

}  // namespace muster
