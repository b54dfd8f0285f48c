#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

// Python's string operations on UTF-8. Lengths and places count characters, as in Python.

/// Bytes of white space at either end. White space is what str.isspace() says.
/// Source: CPython 3.11, Objects/unicodetype_db.h, _PyUnicode_IsWhitespace.
std::size_t leading_space_size(std::string_view text);
std::size_t trailing_space_size(std::string_view text);

/// str.strip, lstrip, rstrip: white space, or any of the characters of `characters`.
enum class StripEnds : std::uint8_t { Both, Left, Right };
std::string_view stripped_text(std::string_view text, StripEnds ends,
                               std::optional<std::string_view> characters);

/// str.lower, upper, capitalize, and Jinja's title: of every word behind white space, '-', '(',
/// '{', '[' or '<' the first letter is upper, the rest lower. Full case mappings, by ICU.
/// Cost: two copies in UTF-16, kCaseCost bytes for each of the text.
std::string lower_text(std::string_view text);
std::string upper_text(std::string_view text);
std::string capitalized_text(std::string_view text);
std::string title_text(std::string_view text);
inline constexpr std::size_t kCaseCost = 4;

std::size_t character_count(std::string_view text);

/// The items of a slice `list[begin:end:step]` by their places; step is not 0.
std::vector<std::size_t> slice_places(std::size_t count, std::optional<std::int64_t> begin,
                                      std::optional<std::int64_t> end, std::int64_t step);

/// The slice `text[begin:end:step]`; step is not 0. Cost: no memory but the slice.
std::string sliced_text(std::string_view text, std::optional<std::int64_t> begin,
                        std::optional<std::int64_t> end, std::int64_t step);

/// `text[place]`; nullopt where there is none. Cost: no memory.
std::optional<std::string_view> character_at(std::string_view text, std::int64_t place);

/// Where each character begins, and the size of the text behind them all.
/// Cost: the places take eight bytes for each byte of the text.
std::vector<std::size_t> character_places(std::string_view text);

/// Where a text is found from byte `from` on, and where it is found last; npos: nowhere. An empty
/// one is found at `from`, and last at the end. Cost: linear in both texts.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from);
std::size_t find_last_text(std::string_view text, std::string_view part);

/// str.replace: all, or the first `count`. An empty `from` stands between all characters.
std::string replaced_text(std::string_view text, std::string_view from, std::string_view to,
                          std::optional<std::int64_t> count);

/// str.split: at white space, empty parts left out, or at each `separator`, which is not empty; at
/// most `count` times, and what is left is the last part with the white space at its end.
std::vector<std::string> split_text(std::string_view text,
                                    std::optional<std::string_view> separator,
                                    std::optional<std::int64_t> count);

/// The first of the lines that str.splitlines makes of a text that is not empty.
/// Source: CPython 3.11, Objects/unicodetype_db.h, _PyUnicode_IsLinebreak.
struct TextLine {
  std::string_view text;  // without its end
  std::size_t size = 0;   // bytes with its end
};
TextLine first_line(std::string_view text);

/// str.isdigit: characters that are digits, and at least one.
bool is_digits(std::string_view text);

/// At least as many parts as `split_text` makes without a count.
std::size_t most_parts(std::string_view text, std::optional<std::string_view> separator);

/// A literal's text between its quotes with the escapes resolved as Python's "unicode-escape" does;
/// an unknown escape keeps its backslash.
/// Errors: InvalidArgument for a broken \x, \u or \U, or \N.
Result<std::string> unescaped(std::string_view literal);

}  // namespace muster
