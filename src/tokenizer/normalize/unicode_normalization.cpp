// ICU supplies the data, but not the algorithm: its version of Unicode is later than the
// library's. Characters that version 9.0 does not know are passed through untouched, and
// ordering and composition are done here with the classes masked in the same way. Text that is
// surely in the form already is copied without decoding.

#include "tokenizer/normalize/unicode_normalization.h"

#include <unicode/unorm2.h>
#include <unicode/utf16.h>

#include <algorithm>
#include <array>

#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

bool is_compatibility(NormalizationForm form) {
  return form == NormalizationForm::Nfkc || form == NormalizationForm::Nfkd;
}

bool is_composed(NormalizationForm form) {
  return form == NormalizationForm::Nfc || form == NormalizationForm::Nfkc;
}

/// Below these, a text is already in the form. Source: UAX 15, "Stability of Normalized Forms" (NFC
/// and Latin-1) and the ASCII rule for all four.
char32_t first_active(NormalizationForm form) {
  return form == NormalizationForm::Nfc ? 0x300 : 0x80;
}

}  // namespace

Result<UnicodeNormalizer> UnicodeNormalizer::make(NormalizationForm form) {
  UErrorCode code = U_ZERO_ERROR;
  const UNormalizer2* composition = unorm2_getNFCInstance(&code);
  const UNormalizer2* decomposition =
      is_compatibility(form) ? unorm2_getNFKDInstance(&code) : unorm2_getNFDInstance(&code);
  if (U_FAILURE(code)) {
    return Error{ErrorKind::Internal,
                 std::string("ICU has no normalisation data: ") + u_errorName(code)};
  }
  return UnicodeNormalizer(form, decomposition, composition);
}

// ICU knows a later Unicode than the library; these two classes say what version 9.0 knows, and the
// stability policy promises that for those characters nothing has changed since.
void UnicodeNormalizer::append_character(char32_t code_point, std::u32string& out) const {
  const auto active =
      is_compatibility(form_) ? CharacterClass::NfkdActive : CharacterClass::NfdActive;
  if (code_point < 0x80 || !is_in_class(code_point, active)) {
    out.push_back(code_point);
    return;
  }
  std::array<UChar, 64> units{};  // the longest decomposition, of U+FDFA, has 18
  UErrorCode code = U_ZERO_ERROR;
  const std::int32_t count =
      unorm2_getDecomposition(decomposition_, static_cast<UChar32>(code_point), units.data(),
                              static_cast<std::int32_t>(units.size()), &code);
  if (count < 0 || U_FAILURE(code)) {
    out.push_back(code_point);
    return;
  }
  for (std::int32_t at = 0; at < count;) {
    UChar32 part = 0;
    U16_NEXT(units.data(), at, count, part);
    out.push_back(static_cast<char32_t>(part));
  }
}

std::uint8_t UnicodeNormalizer::combining_class(char32_t code_point) const {
  if (code_point < 0x300 || !is_in_class(code_point, CharacterClass::NfdActive)) {
    return 0;
  }
  return unorm2_getCombiningClass(decomposition_, static_cast<UChar32>(code_point));
}

// Stable, since marks of one class must keep their order: that order carries meaning.
void UnicodeNormalizer::sort_marks(std::u32string& text, std::size_t begin) const {
  for (std::size_t at = begin; at < text.size();) {
    if (combining_class(text[at]) == 0) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    while (end < text.size() && combining_class(text[end]) != 0) {
      ++end;
    }
    if (end - at > 1) {
      std::stable_sort(
          text.begin() + static_cast<std::ptrdiff_t>(at),
          text.begin() + static_cast<std::ptrdiff_t>(end),
          [this](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    }
    at = end;
  }
}

void UnicodeNormalizer::append_decomposed(std::u32string_view text, std::u32string& out) const {
  const std::size_t begin = out.size();
  for (const char32_t c : text) {
    append_character(c, out);
  }
  sort_marks(out, begin);
}

char32_t UnicodeNormalizer::composite(char32_t first, char32_t second) const {
  const UChar32 whole =
      unorm2_composePair(composition_, static_cast<UChar32>(first), static_cast<UChar32>(second));
  const bool is_known =
      whole >= 0 && is_in_class(static_cast<char32_t>(whole), CharacterClass::NfdActive);
  return is_known ? static_cast<char32_t>(whole) : 0;
}

// The canonical composition algorithm: each character joins the last starter unless one of the same
// or a higher class stands between them.
void UnicodeNormalizer::compose(std::u32string& text) const {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t starter = kNone;
  std::size_t end = 0;
  std::uint8_t last_class = 0;
  for (const char32_t c : text) {
    const std::uint8_t own_class = combining_class(c);
    const bool is_adjacent = starter != kNone && starter + 1 == end;
    const bool is_blocked = !is_adjacent && (last_class >= own_class || last_class == 0);
    if (starter != kNone && !is_blocked) {
      if (const char32_t whole = composite(text[starter], c); whole != 0) {
        text[starter] = whole;
        continue;
      }
    }
    if (own_class == 0) {
      starter = end;
    }
    last_class = own_class;
    text[end++] = c;
  }
  text.resize(end);
}

void UnicodeNormalizer::append(std::string_view text, std::string& out) const {
  const std::size_t ascii = ascii_prefix_size(text);
  bool is_normalized = true;
  for_each_utf8_char(text.substr(ascii), [&](char32_t c, std::size_t, std::size_t) {
    is_normalized = is_normalized && c < first_active(form_);
  });
  if (is_normalized) {
    out.append(text);
    return;
  }
  std::u32string decoded;
  for_each_utf8_char(text, [&](char32_t c, std::size_t, std::size_t) { decoded.push_back(c); });
  std::u32string characters;
  append_decomposed(decoded, characters);
  if (is_composed(form_)) {
    compose(characters);
  }
  for (const char32_t c : characters) {
    append_utf8(c, out);
  }
}

}  // namespace muster
