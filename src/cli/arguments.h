#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "config/schema.h"

namespace muster {

/// Sorts the words after a command's name. "--flag value" and "--flag=value" are the same, "--"
/// ends the flags, "-" alone is an input; a switch `--normalize` is turned off by `--no-normalize`.
///
/// Errors: InvalidArgument: an unknown flag with the nearest right one, a missing value, a flag
/// given twice with different values, too few or too many words. Threads: pure.
Result<Arguments> parse_arguments(const CommandSpec& spec, std::span<const std::string> words);

/// The flags of every command: --color, --config, --help.
std::span<const RunFlag> common_flags();

/// What a command line says of colours, for what is printed before its words are sorted out and
/// where they cannot be. Its last --color before a "--" counts; Auto for a word that is none.
ColorChoice color_choice_of(std::span<const std::string> words);

/// What a flag means to one command: it sets a setting, or is one of the run.
struct FlagMeaning {
  std::string name;                  // as messages name it: "--max-length"
  const Setting* setting = nullptr;  // or a flag of the run:
  const RunFlag* flag = nullptr;
  bool takes_value = false;
  bool is_negated = false;  // "--no-normalize"
};

/// Every flag that the command understands under each of its names, in the order of its help; it
/// points into `spec`.
std::vector<FlagMeaning> flag_meanings(const CommandSpec& spec);

/// Every flag that the command understands, "--no-" forms included.
std::vector<std::string> flag_names(const CommandSpec& spec);

}  // namespace muster
