#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "config/schema.h"

namespace muster {

/// How the value of a variable that other programs read becomes a setting of muster.
enum class ForeignUse : std::uint8_t {
  Value,    // as it is, but for the unmet ones among `words`
  Word,     // by `words`, without regard to case; true and false also as 1, yes, on, 0, no, off
  Percent,  // "80.0" -> "0.8"
  Seconds,  // "60.0" -> "60s"
  GpuIds,   // "0,2" -> "cuda:0,cuda:2"
  GpuCount,
  PrimaryGpu,
  SecondaryGpus,  // these three say together which devices
  Unmet,          // whatever its value, muster does not do it: `reason`
};

/// A word that a variable may have.
struct ForeignWord {
  std::string_view theirs;
  std::string_view ours = {};  // the setting's value; empty: it asks for what muster does anyhow
  bool is_met = true;          // false: muster does not do it, `reason` says what holds
};

/// A variable that other programs of this field read, and what `muster serve` makes of it. Each
/// either changes what happens, or is named in a warning that says what holds instead: a file of
/// variables that was written for another program starts this one.
/// Why: docs/decisions/019-variables-of-others.md.
struct ForeignName {
  std::string_view name;  // "MEMORY_THRESHOLD"; "AUTO_TUNE_*": all that begin so
  ForeignUse use = ForeignUse::Unmet;
  std::optional<SettingId> setting = {};  // nullopt: none is set
  std::vector<ForeignWord> words = {};
  std::string_view reason = {};  // of what is unmet: what holds, and the nearest that muster has
};

/// The table, by topic. Source: the variables that docs/from-the-documents.md speaks of.
std::span<const ForeignName> foreign_names();

/// A variable of the table that has a value.
struct SetForeignName {
  std::string name;
  const ForeignName* row = nullptr;  // of the table, which lives as long as the program
};

/// Those among `environment` ("NAME=value"): what a command that reads none of them passes over.
std::vector<SetForeignName> foreign_names_in(const std::vector<std::string>& environment);

/// The settings among `environment` ("NAME=value") by the names of the table, and at most one
/// warning: what is asked for and not done, each reason once. The values of `Unmet` names are not
/// repeated, since a password may be among them. Empty values count as not set.
///
/// Errors: InvalidArgument (a value that is of no such form; names that say different things about
/// the devices, naming them).
Result<EnvironmentValues> read_foreign_environment(const std::vector<std::string>& environment);

}  // namespace muster
