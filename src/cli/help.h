#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "terminal/terminal_info.h"

namespace muster {

/// The text of `muster --help`: commands, and where to read on. Wrapped between words at the
/// terminal's width.
std::string general_help(std::span<const Command> commands, const TerminalInfo& terminal);

/// The text of `muster COMMAND --help`: usage, flags by group with their defaults, examples.
/// Wrapped likewise; an example that is too wide goes on behind a backslash, so that it can still
/// be pasted into a shell.
std::string command_help(const CommandSpec& spec, const TerminalInfo& terminal);

}  // namespace muster
