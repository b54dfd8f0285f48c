#pragma once

#include <chrono>

#include "base/clock.h"
#include "net/http_server.h"
#include "server/error_form.h"
#include "server/routes.h"

namespace muster {

/// When to come again while the server shuts down or has no room.
inline constexpr Duration kComeAgain = std::chrono::seconds(1);

/// Puts a refusal that the HTTP server words itself into the form of the API's errors.
void dress_refusal(HttpResponse& response, ErrorForm form);

/// The answer where no route takes a request: 405 with `Allow` for a path that exists under another
/// method, 404 with the nearest one, or what to do instead, for a path that no route has.
HttpResponse missing_route_response(const HttpRequest& request, const RouteMiss& miss);

}  // namespace muster
