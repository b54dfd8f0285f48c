#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {

/// How a paragraph is laid out.
struct Wrap {
  std::size_t width = 80;      // columns; kUnboundedWidth: one line
  std::string_view head = {};  // the first word follows it, with no space between
  std::size_t indent = 0;      // columns: where every further line begins
};

/// The words of `text`, made `printable`, in lines of at most `width` columns, each with its line
/// end. Words are never broken: one that is wider than a line stands alone in it. The result begins
/// with `head`, byte for byte, so that it can be coloured afterwards (`styled_start`).
std::string wrapped(std::string_view text, const Wrap& wrap);

/// The same where the text is wider than a line; else `head` and the text in one line, `printable`
/// but otherwise as it is: a name keeps its spaces.
std::string wrapped_where_wider(std::string_view text, const Wrap& wrap);

/// The text if it fits into `width` columns, else its first words and "…": words are not broken.
/// Where not even the first one fits, "…" alone.
std::string fit_whole_words(std::string_view text, std::size_t width);

/// The text and so many spaces behind it that it takes `width` columns, or more where it is longer.
std::string padded(std::string_view text, std::size_t width);

/// Columns of the widest word.
std::size_t widest_word(std::string_view text);

}  // namespace muster
