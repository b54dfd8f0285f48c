#pragma once

#include <optional>
#include <string>

#include "net/http_message.h"
#include "server/api_error.h"
#include "server/api_keys.h"
#include "server/routes.h"

namespace muster {

/// Whether a request may call an admin route where there is no keys file: it must come from this
/// machine, name this machine in `Host`, so that a page in a browser that had another name resolved
/// to 127.0.0.1 cannot, and carry no header of a proxy, behind which anybody may stand.
///
/// Errors: 403. Threads: pure.
ApiStatus check_local_admin(const HttpRequest& request);

/// Whether a request may read the settings where there is no keys file: `Host` must be an address,
/// or a name without a dot (`localhost`). A page in a browser can have a name of its own resolved
/// to this machine, but not one of these.
///
/// Errors: 403. Threads: pure.
ApiStatus check_host(const HttpRequest& request);

/// Who asks, and why not.
struct KeyVerdict {
  Caller caller;                    // no name: the key is none of ours
  std::optional<ApiError> refusal;  // 401 (as ApiKeys::authenticate), 403 (it has not that scope)
};

/// Whether the key of a request may use routes of this scope.
KeyVerdict check_key(const ApiKeys& keys, const HttpRequest& request, RouteScope scope,
                     double unix_seconds);

/// A body must be JSON by its Content-Type, or have none, or have the type of forms, which curl -d
/// sends where none is named: it is read as JSON all the same. An admin route demands the header: a
/// page of another origin cannot send it without asking first, and is never answered yes.
///
/// Errors: 415. Source: WHATWG Fetch, "CORS-safelisted request-header"; curl(1), "--data"; the
/// examples of Ollama's API, which name no type.
ApiStatus check_content_type(const HttpRequest& request, RouteScope scope);

}  // namespace muster
