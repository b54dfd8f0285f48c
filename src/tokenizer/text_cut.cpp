// A long text is encoded in parts, and a cut may not change a token. So a text is cut only
// before white space between two solid characters, or before a Chinese character, and only as
// far as the tokenizer's rules allow. A letter of the grapheme class Prepend does not count as
// solid, since it would draw the space into its own cluster. The search goes backwards from the
// end, so its usual cost is one word.

#include "tokenizer/text_cut.h"

#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

/// A letter or digit that does not draw what is behind it into its own grapheme cluster.
bool is_word_character(char32_t c) {
  const std::uint32_t classes = character_classes(c);
  return (is_letter(classes) || is_number(classes)) && grapheme_class(c) != GraphemeClass::Prepend;
}

bool is_solid(char32_t c) { return c < 0x80 ? c > ' ' && c < 0x7F : is_word_character(c); }

/// Whether the white space at `at` stands between the right characters.
bool can_cut_before_space(std::string_view text, std::size_t at, std::size_t end, CutRules rules) {
  const bool is_line_feed = text[at] == '\n';
  if (at + 1 >= end || !(is_line_feed ? rules.before_line_feed : rules.before_space)) {
    return false;
  }
  const char32_t before = utf8_char_before(text, at).code_point;
  const Utf8Char next = utf8_char_at(text, at + 1);
  return (is_line_feed ? is_word_character(before) : is_solid(before)) &&
         is_solid(next.code_point) && at + 1 + next.size <= end;
}

}  // namespace

std::size_t last_cut(std::string_view text, std::size_t begin, std::size_t end, CutRules rules) {
  for (std::size_t at = end; at > begin + 1;) {
    --at;
    const auto byte = static_cast<unsigned char>(text[at]);
    if ((byte == ' ' || byte == '\n') && can_cut_before_space(text, at, end, rules)) {
      return at;
    }
    if (rules.before_chinese && byte >= 0xC0) {
      const Utf8Char next = utf8_char_at(text, at);
      if (at + next.size <= end && is_bert_chinese(next.code_point)) {
        return at;
      }
    }
  }
  return begin;
}

}  // namespace muster
