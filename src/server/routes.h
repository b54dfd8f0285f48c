#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "server/error_form.h"

namespace muster {

/// Who may call a route.
enum class RouteScope : std::uint8_t {
  Open,   // everybody: what probes and clients ask before they have a key
  Embed,  // with a keys file: a key with that scope
  Read,   // with a keys file: a key with that scope
  Admin,  // a key with that scope; without a keys file, programs of this machine
};

/// What else sets a route apart.
enum class RouteKind : std::uint8_t {
  Plain,
  Compute,   // a device computes the answer: an idle worker is woken as soon as the request begins
  Reply,     // a decoder writes the answer; a key's limits on these are counted apart
  Probe,     // asked every few seconds: in the log at debug level only
  Settings,  // shows settings: without a keys file only to a request that names this machine
};

class Exchange;
/// Answers an exchange once, now or later. Threads: the loop's.
using RouteHandler = void (*)(const std::shared_ptr<Exchange>&);

struct Route {
  std::string_view method;   // GET stands for HEAD too
  std::string_view pattern;  // "/multigpu/gpu/{id}/stats"; {name} at the end may hold slashes
  RouteScope scope = RouteScope::Read;
  RouteHandler answer = nullptr;
  RouteKind kind = RouteKind::Plain;
  ErrorForm errors = ErrorForm::OpenAi;
};
inline constexpr std::size_t kRouteCount = 55;

/// Every route, in the order of the metrics. Those below /multigpu answer below /api/v1/multigpu
/// too.
std::span<const Route> routes();

/// The place of one of `routes()` among them.
std::size_t index_of(const Route& route);

/// Whether a request that begins so is for vectors or scores; by the request line alone.
bool begins_compute_call(std::string_view bytes);

/// How the errors of a path are written, whatever the method; of an unknown one in Ollama's form
/// below /api, but for /api/v1, else in OpenAI's.
ErrorForm error_form_of(std::string_view path);

struct RouteMatch {
  const Route* route = nullptr;
  std::string parameter;  // what stands for {…}, percent-decoded
};

struct RouteMiss {
  std::string allow;                   // "GET, HEAD": the path is there, the method is not
  std::optional<std::string> nearest;  // else a route that was perhaps meant
  std::string_view instead;            // or what to do here for want of such a route
};

/// Threads: pure.
std::variant<RouteMatch, RouteMiss> find_route(std::string_view method, std::string_view path);

/// `%41` becomes `A`; nullopt for a broken escape or a NUL.
/// Source: RFC 3986 section 2.1.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace muster
