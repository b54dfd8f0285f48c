#pragma once

#include "net/http_message.h"
#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/routes.h"

namespace muster {

/// Whether a request may call an admin route where there is no keys file: it must come from this
/// machine, and name this machine in `Host`, so that a page in a browser that had another name
/// resolved to 127.0.0.1 cannot.
///
/// Errors: 403. Threads: pure.
ApiStatus check_local_admin(const HttpRequest& request);

/// Who asks, by name, when the key may use routes of this scope.
///
/// Errors: 401 (as ApiKeys::authenticate), 403 (the key has not that scope).
ApiResult<std::string> check_key(const ApiKeys& keys, const HttpRequest& request, RouteScope scope,
                                 double unix_seconds);

/// A body must be JSON by its Content-Type, or have none. An admin route demands the header: a page
/// of another origin cannot send it without asking first, and is never answered yes.
///
/// Errors: 415. Source: WHATWG Fetch, "CORS-safelisted request-header".
ApiStatus check_content_type(const HttpRequest& request, RouteScope scope);

}  // namespace muster
