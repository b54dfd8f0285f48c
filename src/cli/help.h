#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace muster {

/// The text of `muster --help`: commands, and where to read on. Fits 80 columns.
std::string general_help(std::span<const Command> commands);

/// The text of `muster COMMAND --help`: usage, flags by group with their defaults, examples. Fits
/// 80 columns.
std::string command_help(const CommandSpec& spec);

}  // namespace muster
