#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// A part of a template.
struct TemplateToken {
  enum class Kind : std::uint8_t {
    Data,            // text that is printed as it is
    OutputBegin,     // {{
    OutputEnd,       // }}
    StatementBegin,  // {%
    StatementEnd,    // %}
    Name,
    Integer,
    Float,
    Text,      // a literal, its escapes resolved
    Operator,  // "+", "==", "["
    End,       // of the template
  };
  Kind kind = Kind::End;
  std::string text;
  std::uint32_t line = 1;
};

/// Cuts a template into parts. White space is controlled as transformers sets Jinja up: a line end
/// behind a statement or comment goes (trim_blocks), and so does the white space before one on its
/// line (lstrip_blocks); `-` and `+` in a tag say otherwise. One line end at the end of the
/// template goes, and all line ends are line feeds.
///
/// Errors: InvalidArgument, with the line (a tag or text that does not end, an unknown character or
/// escape).
/// Source: Jinja 3.1, lexer.py.
Result<std::vector<TemplateToken>> lex_template(std::string_view source);

}  // namespace muster
