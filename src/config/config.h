#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/model_entries.h"
#include "config/schema.h"
#include "config/values.h"

namespace muster {

/// Where a value can come from, weakest first.
enum class Origin : std::uint8_t {
  Default,
  File,
  Foreign,  // a variable that other programs read, too: foreign_names.h
  Environment,
  Flag,
  Request,  // to a running server
};

/// "default", "file", "environment" (of both kinds), "flag", "request".
std::string_view origin_name(Origin origin);

/// A value as somebody gave it.
struct GivenValue {
  SettingId id = SettingId::Devices;
  std::string value;
  std::string place;  // "--max-length", "MUSTER_MAX_LENGTH", "muster.yaml:3"
};

/// A value as it counts.
struct EffectiveValue {
  std::optional<std::string> value;  // nullopt: none was given and there is no default
  Origin origin = Origin::Default;
  std::string place;  // as GivenValue's; for defaults empty, or how it was found
};

/// Names the file of settings; no setting of its own.
inline constexpr std::string_view kConfigFileVariable = "MUSTER_CONFIG";

struct ConfigSources {
  std::vector<GivenValue> flags;
  std::vector<std::string> environment;       // all of it, "NAME=value"
  std::optional<std::filesystem::path> file;  // of --config; it must exist
  std::filesystem::path working_folder;       // whose muster.yaml counts where no file is named
  bool reads_foreign_names = false;           // of the environment: those of foreign_names.h, too
};

/// The effective settings of one run: flag before environment before file before default. Within
/// the environment a MUSTER_ name goes before one of another program.
///
/// Threads: immutable after `set_default`.
class Config {
 public:
  /// Reads, checks and merges.
  ///
  /// Errors: InvalidArgument (an unknown key of the file, with the nearest right one; a value out
  /// of range; two names of one setting that disagree, naming both places), NotFound (the named
  /// file), Corrupt (no YAML, with the line), those of read_foreign_environment.
  static Result<Config> load(const ConfigSources& sources);

  const EffectiveValue& at(SettingId id) const { return values_[static_cast<std::size_t>(id)]; }

  std::optional<std::string> text(SettingId id) const { return at(id).value; }
  std::optional<std::uint32_t> count(SettingId id) const;  // of a Count
  std::optional<bool> is_on(SettingId id) const;           // of a Switch
  std::optional<Duration> time(SettingId id) const;        // of a Time
  std::optional<std::uint64_t> bytes(SettingId id) const;  // of a Bytes
  std::optional<double> fraction(SettingId id) const;      // of a Fraction
  TextPairs map(SettingId id) const;                       // of a Map; empty without a value
  TextPairs files(SettingId id) const;                     // of a Files; empty without a value
  std::vector<ModelEntry> models(SettingId id) const;      // of a Models; empty without a value

  /// Puts a default that had to be found out in the place of none. `place` says how it was found.
  void set_default(SettingId id, std::string value, std::string place);

  /// Gives a setting another value while a program runs. `value` is in its one form.
  void set(SettingId id, EffectiveValue value);

  /// Sentences about what was left out: variables of other programs that ask for what muster does
  /// not do (where they are read), unknown MUSTER_ variables. At most one each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The file that was read; nullopt if there was none.
  const std::optional<std::filesystem::path>& file() const { return file_; }

 private:
  Status merge(Origin origin, const std::vector<GivenValue>& given);

  std::array<EffectiveValue, kSettingCount> values_;
  std::optional<std::filesystem::path> file_;
  std::vector<std::string> warnings_;
};

/// The settings in the text of a YAML file: one mapping of names to values. A setting that is a map
/// takes a mapping, `models` a list of mappings or of names; all others plain values.
///
/// file_name: for places and messages.
/// Errors: Corrupt (no YAML), InvalidArgument (an unknown or repeated key, a list or mapping as a
/// value of a setting that takes none).
Result<std::vector<GivenValue>> parse_config_yaml(const std::string& text,
                                                  const std::string& file_name);

struct EnvironmentValues {
  std::vector<GivenValue> given;
  std::vector<std::string> warnings;  // at most one sentence
};

/// The settings among `environment` ("NAME=value"); empty values count as not set.
///
/// A MUSTER_ name that no setting has is left out with a warning that names the nearest right one:
/// who runs the program does not always say what is in its environment. Nor are the names a
/// setting's that Kubernetes gives every container beside a Service named "muster", whatever their
/// values: MUSTER_SERVICE_HOST, MUSTER_PORT and the like, and any whose value is "tcp://...".
///
/// Errors: InvalidArgument for an unknown name that is most like a setting that says who is let in
/// or what is written down of them (keys_file, tls_*, audit_log).
Result<EnvironmentValues> read_environment(const std::vector<std::string>& environment);

}  // namespace muster
