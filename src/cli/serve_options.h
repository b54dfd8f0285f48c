#pragma once

#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "serving/serve_options.h"

namespace muster {

/// The settings that `muster serve` takes, as its help shows them.
std::vector<FlagGroup> serve_flag_groups();

/// Settings and words of `muster serve` as what the server does. What costs least is looked at
/// first: form, models and files before a driver or an interpreter has to start.
///
/// A word of the command line is a model, "NAME=MODEL" names it; they come after those of `models`.
/// Precision, pooling and the like of the settings count for every model that does not say its own.
/// Errors: InvalidArgument naming the place of the setting, and those of find_model, parse_devices
/// and places.h.
Result<ServeOptions> serve_options(const CommandContext& context);

/// What the settings give to a model that names none of its own, at the start and in a load.
ModelDefaults model_defaults(const Config& config);

/// Sets those fields of `options` that a request may change; it looks at no file. Otherwise as
/// `apply_live_settings`.
Status apply_request_settings(const Config& config, ServeOptions& options);

/// Sets those fields of `options` that may change while the server runs, from the settings.
/// `options.devices` are those of the server.
///
/// Errors: InvalidArgument, naming the place of the setting or the setting; `options` is then half
/// changed.
Status apply_live_settings(const Config& config, ServeOptions& options);

}  // namespace muster
