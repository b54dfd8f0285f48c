// Cleaning, spaces around Chinese characters, accents and case in one pass instead of four.
// ASCII goes through a table of 256 bytes: it never changes size except by being dropped, so it
// is written straight into the output. Only runs of other characters are decoded. Where the text
// is not cleaned the ASCII path is off.

#include <array>
#include <optional>

#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

constexpr char kDropped = 0;
constexpr char kNotAscii = 1;  // U+0001 itself is a control character, so it never comes out

/// What each byte becomes while the text is ASCII.
using AsciiMap = std::array<char, 256>;

AsciiMap make_ascii_map(const BertNormalizerOptions& options) {
  AsciiMap map{};
  for (unsigned c = 0; c < 256; ++c) {
    const std::uint32_t classes = character_classes(c);
    if (c >= 0x80) {
      map[c] = kNotAscii;
    } else if (has_class(classes, CharacterClass::BertRemoved)) {
      map[c] = kDropped;
    } else if (has_class(classes, CharacterClass::Space)) {
      map[c] = ' ';
    } else {
      map[c] = static_cast<char>(options.lowercase ? lowercase(c) : c);
    }
  }
  return map;
}

class BertNormalizer final : public Normalizer {
 public:
  BertNormalizer(const BertNormalizerOptions& options, std::optional<UnicodeNormalizer> nfd)
      : options_(options), nfd_(nfd), ascii_map_(make_ascii_map(options)) {}

  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    spare.clear();
    std::size_t at = 0;
    while (at < text.size()) {
      if (options_.clean_text) {
        at = append_ascii(text, at, spare);
      }
      const std::size_t end = run_end(text, at);
      append_run(std::string_view(text).substr(at, end - at), spare);
      at = end;
    }
    text.swap(spare);
  }

  bool keeps_start(std::string_view) const override { return false; }

  // Source: UAX 15, "Maximum Expansion Factor" of NFD in UTF-8; the spaces add two bytes to three.
  double growth_max() const override { return 3 * 5.0 / 3; }

  bool isolates_chinese() const override { return options_.handle_chinese_chars; }

 private:
  /// Copies ASCII from `at` on, to the first character that is not.
  std::size_t append_ascii(const std::string& text, std::size_t at, std::string& out) const {
    const std::size_t size_before = out.size();
    out.resize(size_before + (text.size() - at));
    char* put = out.data() + size_before;
    for (; at < text.size(); ++at) {
      const char mapped = ascii_map_[static_cast<unsigned char>(text[at])];
      if (mapped == kNotAscii) {
        break;
      }
      *put = mapped;
      put += mapped != kDropped ? 1 : 0;
    }
    out.resize(static_cast<std::size_t>(put - out.data()));
    return at;
  }

  /// Where the characters that are not ASCII end; the whole text if ASCII has no way of its own. A
  /// dropped control character does not end them: marks on both its sides come together.
  std::size_t run_end(const std::string& text, std::size_t at) const {
    if (!options_.clean_text) {
      return text.size();
    }
    const auto continues = [&](char c) {
      const char mapped = ascii_map_[static_cast<unsigned char>(c)];
      return mapped == kNotAscii || mapped == kDropped;
    };
    while (at < text.size() && continues(text[at])) {
      ++at;
    }
    return at;
  }

  void append_run(std::string_view run, std::string& out) const {
    std::u32string cleaned;
    std::u32string decomposed;
    for_each_utf8_char(run, [&](char32_t c, std::size_t, std::size_t) { clean(c, cleaned); });
    if (nfd_) {
      nfd_->append_decomposed(cleaned, decomposed);
    }
    for (const char32_t c : nfd_ ? decomposed : cleaned) {
      if (nfd_ && is_in_class(c, CharacterClass::BertAccent)) {
        continue;
      }
      append_utf8(options_.lowercase ? lowercase(c) : c, out);
      if (options_.lowercase && c == kCapitalIWithDot) {
        append_utf8(kCombiningDotAbove, out);
      }
    }
  }

  void clean(char32_t c, std::u32string& out) const {
    if (options_.clean_text) {
      const std::uint32_t classes = character_classes(c);
      if (has_class(classes, CharacterClass::BertRemoved)) {
        return;
      }
      c = has_class(classes, CharacterClass::Space) ? U' ' : c;
    }
    if (options_.handle_chinese_chars && is_bert_chinese(c)) {
      out.append({U' ', c, U' '});
    } else {
      out.push_back(c);
    }
  }

  const BertNormalizerOptions options_;
  const std::optional<UnicodeNormalizer> nfd_;  // absent: accents stay
  const AsciiMap ascii_map_;
};

}  // namespace

bool is_bert_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

Result<std::unique_ptr<const Normalizer>> make_bert_normalizer(
    const BertNormalizerOptions& options) {
  std::optional<UnicodeNormalizer> nfd;
  if (options.strip_accents) {
    nfd = MUSTER_TRY(UnicodeNormalizer::make(NormalizationForm::Nfd));
  }
  return std::unique_ptr<const Normalizer>(std::make_unique<BertNormalizer>(options, nfd));
}

}  // namespace muster
