#include "server/access.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace muster {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
  return out;
}

// The host of "localhost:8000", "[::1]:8000", "127.0.0.1".
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

KeyScope key_scope(RouteScope scope) {
  switch (scope) {
    case RouteScope::Admin:
      return KeyScope::Admin;
    case RouteScope::Embed:
      return KeyScope::Embed;
    case RouteScope::Open:
    case RouteScope::Read:
      return KeyScope::Read;
  }
  return KeyScope::Admin;
}

}  // namespace

ApiStatus check_local_admin(const HttpRequest& request) {
  if (!request.is_loopback_peer) {
    return api_error(403,
                     "Without a keys file this route is for programs of the same machine alone");
  }
  const auto header = request.header("Host");
  const std::string host = lower(without_port(header.value_or("")));
  const bool is_here = host == "localhost" || host == "127.0.0.1" || host == "[::1]";
  if (is_here) return Done{};
  return api_error(403, "Without a keys file this route is for localhost, 127.0.0.1 and [::1]");
}

ApiResult<std::string> check_key(const ApiKeys& keys, const HttpRequest& request, RouteScope scope,
                                 double unix_seconds) {
  const auto caller = keys.authenticate(request.headers, unix_seconds);
  if (!caller) return api_error(401, caller.error().message);
  const KeyScope wanted = key_scope(scope);
  if (caller->may(wanted)) return caller->name;
  return api_error(403, "The key lacks the scope " + std::string(key_scope_name(wanted)));
}

ApiStatus check_content_type(const HttpRequest& request, RouteScope scope) {
  if (request.method != "POST") return Done{};
  const auto header = request.header("Content-Type");
  if (!header) {
    if (scope != RouteScope::Admin) return Done{};
    return api_error(415, "This route needs the header Content-Type: application/json");
  }
  const std::string type = lower(trim(header->substr(0, header->find(';'))));
  if (type == "application/json") return Done{};
  return api_error(415, "The body must be sent as Content-Type: application/json");
}

}  // namespace muster
