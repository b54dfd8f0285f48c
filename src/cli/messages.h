#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "terminal/terminal_info.h"

namespace muster {

/// What a sentence on standard error is.
enum class Tone : std::uint8_t { Notice, Warning, Error };

/// "muster: sentence", "muster: warning: sentence" as one line with its line end, whatever a file
/// name or a peer put into it; on a terminal that is narrower, broken between words. An error and a
/// warning begin with a colour where there are colours.
std::string message_line(Tone tone, std::string_view sentence, const TerminalInfo& terminal);

/// Writes lines to standard error. Where that cannot be written, as its reader has left or a disk
/// is full, they are lost and nothing else is: what a command does is worth more than what it says.
void write_message(std::string_view lines);

/// Writes it to standard error, as write_message does.
void say(Tone tone, std::string_view sentence, ColorChoice color);

}  // namespace muster
