#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// Columns that a text takes on a terminal: two for wide East Asian characters and emoji, none for
/// combining marks. Each byte that is no valid UTF-8 counts one.
///
/// Source: Unicode Standard Annex 11 (East Asian Width), ranges of version 15 in coarse blocks.
std::size_t display_width(std::string_view text);

/// Bytes of the first character of a text that is not empty; 1 where it is no valid UTF-8.
std::size_t first_character_size(std::string_view text);

/// The text without anything that moves a cursor or changes a terminal: control characters become
/// spaces, bytes that are no valid UTF-8 become "?". For showing what came from outside.
std::string printable(std::string_view text);

/// The same, but line ends and tabs stay: for a text that goes on line by line.
std::string printable_lines(std::string_view text);

/// The text if it fits into `width` columns, else its beginning and "…".
std::string fit_width(std::string_view text, std::size_t width);

}  // namespace muster
