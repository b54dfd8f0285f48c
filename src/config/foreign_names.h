#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "config/schema.h"

namespace muster {

/// How the value of a variable that other programs read becomes a setting of muster.
enum class ForeignUse : std::uint8_t {
  Value,    // as it is
  Word,     // by `words`, without regard to case; true and false also as 1, yes, on, 0, no, off
  Percent,  // "80.0" -> "0.8"
  Seconds,  // "60.0" -> "60s"
  GpuIds,   // "0,2" -> "cuda:0,cuda:2"
  GpuCount,
  PrimaryGpu,
  SecondaryGpus,  // these three say together which devices
  Refused,        // whatever its value: `reason`
};

/// What a word means: the value of the setting, or none where it asks for what muster does anyhow.
using ForeignWord = std::pair<std::string_view, std::string_view>;

/// A variable that other programs of this field read, and what `muster serve` makes of it. Each
/// either changes what happens, or is refused by name.
struct ForeignName {
  std::string_view name;  // "MEMORY_THRESHOLD"; "AUTO_TUNE_*": all that begin so
  ForeignUse use = ForeignUse::Refused;
  std::optional<SettingId> setting = {};  // nullopt: none is set
  std::vector<ForeignWord> words = {};    // Word; what is not in it is refused with `reason`
  std::string_view reason = {};           // why, and the nearest thing that muster has
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

/// The settings among `environment` ("NAME=value") by the names of the table; empty values count as
/// not set.
///
/// Errors: InvalidArgument (a value that cannot be had, with the reason; one of no such form; names
/// that say different things about the devices, naming them), Unsupported (a name or value that
/// muster refuses, with the reason).
Result<std::vector<GivenValue>> read_foreign_environment(
    const std::vector<std::string>& environment);

}  // namespace muster
