#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The candidate that is most like `word` (Damerau-Levenshtein distance, at most a third of its
/// length, ties to the first), for "unknown flag --devcies: did you mean --devices?".
std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string> candidates);

/// "90.9 MB", "1.2 GB": powers of 1000, three significant digits, as disks and `du -H` count.
std::string human_bytes(std::uint64_t bytes);

/// "1,234,567".
std::string with_thousands(std::uint64_t value);

/// Pieces between separators; an empty text gives one empty piece.
std::vector<std::string> split(std::string_view text, char separator);

/// Without spaces, tabs and line ends on both sides.
std::string_view trim(std::string_view text);

/// The text if it takes at most `size_most` bytes, else its beginning and "…", for a message about
/// a file that may hold anything. No character of UTF-8 is cut.
std::string excerpt(std::string_view text, std::size_t size_most = 60);

/// The last line that has more than blanks, trimmed on the right; empty where there is none.
std::string_view last_line(std::string_view text);

/// Where the first byte is that breaks UTF-8; nullopt for valid text.
/// Source: The Unicode Standard 15.0, table 3-7 (well-formed byte sequences).
std::optional<std::size_t> invalid_utf8_at(std::string_view text);

}  // namespace muster
