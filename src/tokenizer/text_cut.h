#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

/// Where texts may be cut without a change of tokens; which of these hold depends on the tokenizer.
struct CutRules {
  bool before_space = false;      // before a space between two letters, digits or ASCII signs
  bool before_line_feed = false;  // likewise, but behind a letter or digit only
  bool before_chinese = false;    // before a character that BertNormalizer puts between spaces
};

/// The last place in (begin, end) where the text may be cut; `begin` if there is none. The
/// character after the place ends at or before `end`, and after white space so does the one behind
/// that.
std::size_t last_cut(std::string_view text, std::size_t begin, std::size_t end, CutRules rules);

}  // namespace muster
