#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Text as HTML has it, between tags and in quoted attributes alike: `& < > " '` as references;
/// control characters but tab and line end, and bytes that are no UTF-8, as U+FFFD.
///
/// Threads: pure. Source: HTML Living Standard, 13.1.4 "Character references".
std::string html_escaped(std::string_view text);

/// The text where it has at most `bytes_most`; else its beginning, cut between characters, and "…".
/// Threads: pure.
std::string cut_text(std::string_view text, std::size_t bytes_most);

/// A name from outside: cut to 200 bytes, escaped, and isolated, so that letters which are written
/// from right to left do not turn what stands beside it. Threads: pure.
std::string html_name(std::string_view name);

/// A table that scrolls within itself where the page is narrower.
struct HtmlTable {
  std::string caption = {};                         // text
  std::vector<std::string> columns = {};            // HTML; the first is above the rows' names
  std::vector<std::vector<std::string>> rows = {};  // HTML; the first cell names its row
  bool has_words = false;                           // the cells are words, not numbers

  /// Empty where there is no row. Threads: pure.
  std::string html() const;
};

}  // namespace muster
