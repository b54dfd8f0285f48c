#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// Rewrites a pattern in Oniguruma's Ruby syntax, which tokenizer.json has, for PCRE2 with UTF and
/// MULTILINE. Every class (\s, \w, \d, \p{...}) is written out as ranges of the table in
/// unicode_classes.h, so that no Unicode version of PCRE2's own takes part.
///
/// Errors: Unsupported for what the two read differently: \b, \h, \G, \K, back-references, named
/// groups, POSIX brackets, nested classes and &&, options other than (?i:, possessive intervals,
/// and caseless text that Unicode folds to more than one character. Source: Oniguruma 6.9.10,
/// doc/RE; pcre2pattern(3) 10.42.
Result<std::string> translate_pattern(std::string_view oniguruma_pattern);

/// Appends one character that stands for itself in a PCRE2 pattern.
void append_pattern_character(char32_t c, std::string& out);

}  // namespace muster
