// Grapheme clusters by the pairwise rules of UAX 29. Two rules look further back than one
// character: GB9c (conjuncts of Indic scripts) and GB11 (emoji joined by ZWJ). Context keeps
// just the bits that these two need, so a cluster of any length is found in one pass.

#include "tokenizer/normalize/grapheme.h"

#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

bool extends(GraphemeClass c) {
  return c == GraphemeClass::Extend || c == GraphemeClass::ConjunctExtend ||
         c == GraphemeClass::Linker;
}

/// What the characters since the last base mean for the rules that look back further than one.
class Context {
 public:
  void take(GraphemeClass c) {
    takes_pictographic_ = c == GraphemeClass::Zwj && is_emoji_;
    is_emoji_ = c == GraphemeClass::Pictographic || (is_emoji_ && extends(c));
    if (c == GraphemeClass::Consonant) {
      is_conjunct_ = true;
      has_linker_ = false;
    } else if (c == GraphemeClass::Linker) {
      has_linker_ = true;
    } else if (c != GraphemeClass::ConjunctExtend && c != GraphemeClass::Zwj) {
      is_conjunct_ = false;
    }
  }

  bool takes_consonant() const { return is_conjunct_ && has_linker_; }  // GB9c
  bool takes_pictographic() const { return takes_pictographic_; }       // GB11

 private:
  bool is_conjunct_ = false;  // a consonant, then linkers and extenders only
  bool has_linker_ = false;
  bool is_emoji_ = false;  // a pictographic, then extenders only
  bool takes_pictographic_ = false;
};

bool hangul_joins(GraphemeClass before, GraphemeClass after) {
  using enum GraphemeClass;
  switch (before) {
    case L:
      return after == L || after == V || after == LV || after == LVT;  // GB6
    case LV:
    case V:
      return after == V || after == T;  // GB7
    case LVT:
    case T:
      return after == T;  // GB8
    default:
      return false;
  }
}

bool joins(GraphemeClass before, GraphemeClass after, const Context& context) {
  using enum GraphemeClass;
  if (before == Control || after == Control) {
    return false;  // GB4, GB5
  }
  if (extends(after) || after == Zwj || after == SpacingMark || before == Prepend) {
    return true;  // GB9, GB9a, GB9b
  }
  if (after == Consonant) {
    return context.takes_consonant();
  }
  return hangul_joins(before, after) || (after == Pictographic && context.takes_pictographic());
}

}  // namespace

std::size_t grapheme_end(std::string_view text, std::size_t begin) {
  const Utf8Char first = utf8_char_at(text, begin);
  std::size_t end = begin + first.size;
  if (first.code_point == U'\r' && end < text.size() && text[end] == '\n') {
    return end + 1;  // GB3
  }
  GraphemeClass before = grapheme_class(first.code_point);
  Context context;
  context.take(before);
  while (end < text.size()) {
    const Utf8Char next = utf8_char_at(text, end);
    const GraphemeClass after = grapheme_class(next.code_point);
    if (!joins(before, after, context)) {
      break;
    }
    context.take(after);
    before = after;
    end += next.size;
  }
  return end;
}

}  // namespace muster
