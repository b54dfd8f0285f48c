#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "config/config.h"
#include "service/serve_options.h"

namespace muster {

/// The effective settings as a JSON object, `{"name": {"value", "source", "place", "is_live"}}`.
/// Of a secret only that it is set: its value is "(set)".
std::string serve_config_json(const Config& config);

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
  std::string json() const { return serve_config_json(config_); }

  /// With other values, by the names of settings: all of them or none.
  ///
  /// Errors: InvalidArgument (an unknown name with the nearest right one, a wrong value, a setting
  /// that needs a restart), NotFound (a file).
  Result<LiveSettings> changed(const std::map<std::string, std::string>& values) const;

  /// As the file says now; what requests had changed is forgotten.
  ///
  /// Errors: those of Config::load and `changed`.
  Result<LiveSettings> reloaded(const ConfigSources& sources) const;

 private:
  // With the values of `config`, if only those that may change are others.
  Result<LiveSettings> with(Config config) const;

  Config config_;
  ServeOptions options_;
};

}  // namespace muster
