#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

struct UNormalizer2;

namespace muster {

enum class NormalizationForm : std::uint8_t { Nfc, Nfd, Nfkc, Nfkd };

/// The Unicode normalisation forms as the Hugging Face library has them: version 9.0 of the data,
/// so a character that came later neither decomposes, composes nor changes place.
///
/// Threads: immutable.
/// Source: Unicode Standard Annex 15; The Unicode Standard, section 3.11 (canonical ordering).
class UnicodeNormalizer {
 public:
  /// Errors: Internal when ICU cannot load its data.
  static Result<UnicodeNormalizer> make(NormalizationForm form);

  /// Appends the normalised text. Nothing is carried between calls.
  void append(std::string_view text, std::string& out) const;

  /// Appends the decomposition of `text` to `out`, in canonical order.
  void append_decomposed(std::u32string_view text, std::u32string& out) const;

 private:
  UnicodeNormalizer(NormalizationForm form, const UNormalizer2* decomposition,
                    const UNormalizer2* composition)
      : form_(form), decomposition_(decomposition), composition_(composition) {}

  void append_character(char32_t code_point, std::u32string& out) const;
  std::uint8_t combining_class(char32_t code_point) const;
  void sort_marks(std::u32string& text, std::size_t begin) const;
  void compose(std::u32string& text) const;
  char32_t composite(char32_t first, char32_t second) const;

  NormalizationForm form_;
  const UNormalizer2* decomposition_;  // ICU's, alive as long as the process
  const UNormalizer2* composition_;
};

}  // namespace muster
