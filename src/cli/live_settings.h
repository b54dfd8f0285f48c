#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "config/config.h"
#include "serving/serve_options.h"

namespace muster {

/// The effective settings as a JSON object, `{"name": {"value", "source", "place", "is_live"}}`.
/// Of a secret only that it is set: its value is "(set)". Without `shows_places` so are settings
/// that name places of this machine, and "place" is null.
std::string serve_config_json(const Config& config, bool shows_places);

/// The settings of a running server and what they mean. To change them, another one is made, put
/// into force by its owner, and kept if that went well.
///
/// Threads: a value; not thread-safe.
class LiveSettings {
 public:
  /// `options`: what `serve_options` made of `config`.
  LiveSettings(Config config, ServeOptions options)
      : config_(std::move(config)), options_(std::move(options)) {}

  const Config& config() const { return config_; }
  const ServeOptions& options() const { return options_; }
  std::string json(bool shows_places) const { return serve_config_json(config_, shows_places); }

  /// With other values that a request asks for, by the names of settings: all of them or none. No
  /// file is looked at, so that no answer tells of one.
  ///
  /// Errors: InvalidArgument (an unknown name with the nearest right one, a wrong value, a setting
  /// that needs a restart or that no request sets).
  Result<LiveSettings> changed(const std::map<std::string, std::string>& values) const;

  /// As the file says now; what requests had changed is forgotten.
  ///
  /// Errors: those of Config::load; InvalidArgument (a setting that needs a restart; keys, clients'
  /// certificates or TLS that are no longer there), NotFound (a file).
  Result<LiveSettings> reloaded(const ConfigSources& sources) const;

  /// "queue_budget from 2s to 500ms, log_level from info to debug"; empty: nothing.
  std::string changes_since(const LiveSettings& before) const;

 private:
  // Whether only those that may change are others; those that are not keep where they came from.
  Status check_live(Config& config) const;

  Config config_;
  ServeOptions options_;
};

}  // namespace muster
