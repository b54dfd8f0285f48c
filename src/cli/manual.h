#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace muster {

/// The manual page muster(1) as man(7) source: every command with its flags, their defaults and
/// examples, the variables, the files, the exit codes. From the tables of `--help`.
///
/// Threads: pure. Source: groff_man(7), mandoc_man(7).
std::string manual_page(std::span<const Command> commands);

}  // namespace muster
