#include "tokenizer/text_cut.h"

#include "tokenizer/normalizer.h"
#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

bool is_solid(char32_t c) {
  if (c < 0x80) {
    return c > ' ' && c < 0x7F;
  }
  const std::uint32_t classes = character_classes(c);
  return is_letter(classes) || is_number(classes);
}

}  // namespace

std::size_t last_cut(std::string_view text, std::size_t begin, std::size_t end, CutRules rules) {
  for (std::size_t at = end; at > begin + 1;) {
    --at;
    const auto byte = static_cast<unsigned char>(text[at]);
    if (rules.before_space && byte == ' ' && at + 1 < end) {
      const Utf8Char next = utf8_char_at(text, at + 1);
      const bool stands_between =
          is_solid(utf8_char_before(text, at).code_point) && is_solid(next.code_point);
      if (stands_between && at + 1 + next.size <= end) {
        return at;
      }
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
