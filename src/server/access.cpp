// Two gates. With a keys file the key decides: 401 for a key that is not known, 403 for one that
// lacks the scope. Without one the peer must be local, `Host` must name this machine and no header
// may come from a proxy. All three are needed: a reverse proxy on this machine and a page in a
// local browser both connect from the loopback address.

#include "server/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "net/socket_address.h"

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

// What a proxy adds: RFC 7239 (Forwarded), RFC 9110 section 7.6.3 (Via), and what nginx, HAProxy,
// Apache, Envoy and the large CDNs are set to send in their place.
// A proxy that adds none of these is not recognised; that is why an admin route asks for `Host` as
// well.
bool is_of_a_proxy(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames{
      "forwarded",        "via",       "x-real-ip",   "x-client-ip",        "true-client-ip",
      "cf-connecting-ip", "client-ip", "x-remote-ip", "x-cluster-client-ip"};
  const std::string word = lower(name);
  return word.starts_with("x-forwarded") || word.starts_with("x-envoy-") ||
         word.starts_with("x-original-") ||
         std::find(kNames.begin(), kNames.end(), word) != kNames.end();
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

std::string scopes_of(const Caller& caller) {
  std::string names;
  for (const auto scope : {KeyScope::Embed, KeyScope::Read, KeyScope::Admin}) {
    if (!caller.may(scope)) continue;
    names += (names.empty() ? "" : ", ") + std::string(key_scope_name(scope));
  }
  return names.empty() ? "none" : names;
}

}  // namespace

ApiStatus check_local_admin(const HttpRequest& request) {
  if (!request.is_loopback_peer) {
    return api_error(
        403,
        "Without a keys file this route is for programs of the same machine alone, and "
        "over a Unix socket for those of the server's own user");
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_of_a_proxy(name)) continue;
    return api_error(403, "Without a keys file this route takes no request that a proxy forwards");
  }
  const auto header = request.header("Host");
  const std::string host = lower(without_port(header.value_or("")));
  const bool is_here = host == "localhost" || host == "127.0.0.1" || host == "[::1]";
  if (is_here) return Done{};
  return api_error(403, "Without a keys file this route is for localhost, 127.0.0.1 and [::1]");
}

ApiStatus check_host(const HttpRequest& request) {
  const auto host = without_port(request.header("Host").value_or(""));
  const auto bare = host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  const bool is_name_of_a_domain = host.find('.') != std::string_view::npos;
  if (SocketAddress::parse(std::string(bare)) || !is_name_of_a_domain) return Done{};
  return api_error(403,
                   "Without a keys file this route is asked by address, such as 127.0.0.1, or as "
                   "localhost");
}

KeyVerdict check_key(const ApiKeys& keys, const HttpRequest& request, RouteScope scope,
                     double unix_seconds) {
  const auto caller = keys.authenticate(request.headers, unix_seconds);
  if (!caller) return {.caller = {}, .refusal = api_error(401, caller.error().message)};
  const KeyScope wanted = key_scope(scope);
  if (caller->may(wanted)) return {.caller = *caller, .refusal = std::nullopt};
  return {
      .caller = *caller,
      .refusal = api_error(403, "The key lacks the scope " + std::string(key_scope_name(wanted)) +
                                    ": it has " + scopes_of(*caller))};
}

// The order serves the frequent case: the exact spelling that clients send is compared first, and
// only other spellings pay for a lower-case copy. An encoded body is refused before its type is
// looked at, because nothing here decompresses.
ApiStatus check_content_type(const HttpRequest& request, RouteScope scope) {
  if (request.method != "POST") return Done{};
  const auto coding = request.header("Content-Encoding");
  if (coding && lower(trim(*coding)) != "identity") {
    constexpr std::size_t kShownMost = 40;
    return api_error(415,
                     fmt::format("The body must be sent as it is, without Content-Encoding: {}",
                                 trim(*coding).substr(0, kShownMost)));
  }
  const auto header = request.header("Content-Type");
  if (!header) {
    if (scope != RouteScope::Admin) return Done{};
    return api_error(415, "This route needs the header Content-Type: application/json");
  }
  if (*header == "application/json") return Done{};  // as clients send it, ten thousand a second
  const std::string type = lower(trim(header->substr(0, header->find(';'))));
  const bool is_curls = scope != RouteScope::Admin && type == "application/x-www-form-urlencoded";
  if (type != "application/json" && !is_curls) {
    return api_error(415, "The body must be sent as Content-Type: application/json");
  }
  const std::string parameters = lower(*header);
  const auto charset = parameters.find("charset=");
  if (charset == std::string::npos) return Done{};
  // RFC 8259, section 8.1: JSON is UTF-8; US-ASCII is a part of it.
  const std::string_view name = std::string_view(parameters).substr(charset + 8);
  const auto is = [&](std::string_view text) { return name.starts_with(text); };
  if (is("utf-8") || is("\"utf-8\"") || is("us-ascii")) return Done{};
  return api_error(415, "The body must be sent in UTF-8: Content-Type: application/json");
}

}  // namespace muster
