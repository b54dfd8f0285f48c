#pragma once

#include <string>

#include "base/result.h"
#include "config/config.h"
#include "serving/serve_options.h"

namespace muster {

/// An error about a setting, which begins with where its value came from: the flag, the variable,
/// or file and line.
Error invalid_setting(const Config& config, SettingId id, const std::string& message);

/// Port, Unix socket and the limits of connections. Errors: InvalidArgument, naming the setting.
Status set_listening(const Config& config, HttpServerOptions& http);

/// TLS, or none. What is in the files is checked by the server, which reads them.
///
/// Errors: NotFound (no such file), InvalidArgument (a setting without the one it needs, a private
/// key that others can read).
Status set_tls(const Config& config, HttpServerOptions& http);

/// The keys file, or the one key. Errors: InvalidArgument, which never has the key.
Status set_keys(const Config& config, ServeOptions& options);

}  // namespace muster
