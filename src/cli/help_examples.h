#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// The examples of a command and what is said behind them, wrapped at `width` columns.
///
/// Lines that begin with two spaces are commands and stay as they are where they fit. One that does
/// not is broken between the shell's words, each line but the last ending in a backslash; a comment
/// at its end goes above it. Other lines that follow each other are one paragraph.
std::string examples_text(std::string_view examples, std::size_t width);

}  // namespace muster
