#pragma once

#include <cstdint>
#include <vector>

namespace muster {

/// Unicode's general categories. Source: The Unicode Standard, table 4-4.
enum class GeneralCategory : std::uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,  //
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co,
  Cn,
};

/// What the Hugging Face library finds a character to be. It mixes tables of several Unicode
/// versions, so each class is named after the place that asks;
/// tools/fixtures/tokenizer_unicode_tables.py reads them out of the library itself.
enum class CharacterClass : std::uint32_t {
  Space = 1U << 5,            // \s and char::is_whitespace
  Word = 1U << 6,             // \w of the pre-tokenizer Whitespace and of `single_word`
  Numeric = 1U << 7,          // what Digits isolates
  Punctuation = 1U << 8,      // what Punctuation and BertPreTokenizer isolate
  BertRemoved = 1U << 9,      // what BertNormalizer's clean_text drops
  BertAccent = 1U << 10,      // what BertNormalizer's strip_accents drops after NFD
  StrippedAccent = 1U << 11,  // what StripAccents drops
  NfdActive = 1U << 12,       // decomposes canonically, or has a combining class
  NfkdActive = 1U << 13,      // decomposes in either way, or has a combining class
  PatternWord = 1U << 14,     // \w in a pattern, where Oniguruma is asked
};

/// The classes of one character as bits, and its category in the low five.
///
/// Cost: two dependent loads. Threads: thread-safe; the tables are made on first use.
std::uint32_t character_classes(char32_t code_point);

/// Characters side by side that are alike in everything.
struct ClassRange {
  char32_t first = 0;
  char32_t last = 0;
  std::uint32_t classes = 0;
};

/// All of them, from U+0000 to U+10FFFF without a gap.
std::vector<ClassRange> class_ranges();

inline bool has_class(std::uint32_t classes, CharacterClass wanted) {
  return (classes & static_cast<std::uint32_t>(wanted)) != 0;
}
inline bool is_in_class(char32_t code_point, CharacterClass wanted) {
  return has_class(character_classes(code_point), wanted);
}

/// The category as Oniguruma sees it, for \p{...} in patterns.
inline GeneralCategory general_category(std::uint32_t classes) {
  return static_cast<GeneralCategory>(classes & 0x1F);
}
inline bool is_letter(std::uint32_t classes) {
  return general_category(classes) <= GeneralCategory::Lo;
}
inline bool is_number(std::uint32_t classes) {
  const GeneralCategory category = general_category(classes);
  return category >= GeneralCategory::Nd && category <= GeneralCategory::No;
}

/// The part that a character plays in grapheme clusters, as the library's normaliser Precompiled
/// sees it; read out of it like the classes. Source: Unicode Standard Annex 29, table 2.
enum class GraphemeClass : std::uint8_t {
  Other,    // regional indicators, too: whether two of them join makes no difference (grapheme.h)
  Control,  // line ends included
  Extend,
  ConjunctExtend,  // Extend, and Indic_Conjunct_Break=Extend
  Linker,          // Extend, and Indic_Conjunct_Break=Linker
  Zwj,
  SpacingMark,
  Prepend,
  L,
  V,
  T,
  LV,
  LVT,
  Pictographic,
  Consonant,  // Indic_Conjunct_Break=Consonant
};
GraphemeClass grapheme_class(char32_t code_point);

/// The small letter of a capital, else the character itself. U+0130 becomes two characters in full
/// lowercasing; the caller appends U+0307 to the `i` that this returns for it.
char32_t lowercase(char32_t code_point);

inline constexpr char32_t kCapitalIWithDot = 0x130;
inline constexpr char32_t kCombiningDotAbove = 0x307;

}  // namespace muster
