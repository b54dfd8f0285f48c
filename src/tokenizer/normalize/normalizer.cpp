// The small normalisers, each a direct counterpart of one in the library. Besides the text each
// says what it means for cutting: whether a segment may be normalised in parts, by what factor a
// text can grow (which bounds the memory a hostile file can ask for), and whether it keeps the
// start of the text in place.

#include "tokenizer/normalize/normalizer.h"

#include <algorithm>
#include <utility>

#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/split/byte_alphabet.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

class LowercaseNormalizer final : public Normalizer {
 public:
  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    spare.clear();
    for_each_utf8_char(text, [&](char32_t c, std::size_t, std::size_t) {
      append_utf8(lowercase(c), spare);
      if (c == kCapitalIWithDot) {
        append_utf8(kCombiningDotAbove, spare);
      }
    });
    text.swap(spare);
  }

  double growth_max() const override { return 1.5; }  // U+0130: two bytes become three
  bool keeps_start(std::string_view) const override { return true; }
};

class StripAccentsNormalizer final : public Normalizer {
 public:
  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    if (ascii_prefix_size(text) == text.size()) {
      return;
    }
    spare.clear();
    for_each_utf8_char(text, [&](char32_t c, std::size_t, std::size_t) {
      if (!is_in_class(c, CharacterClass::StrippedAccent)) {
        append_utf8(c, spare);
      }
    });
    text.swap(spare);
  }

  bool keeps_start(std::string_view) const override { return false; }
};

class FormNormalizer final : public Normalizer {
 public:
  explicit FormNormalizer(UnicodeNormalizer form) : form_(form) {}

  // Source: UAX 15, "Maximum Expansion Factor" for UTF-8, the worst of the four.
  double growth_max() const override { return 11; }
  bool keeps_start(std::string_view) const override { return true; }

  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    spare.clear();
    form_.append(text, spare);
    text.swap(spare);
  }

 private:
  const UnicodeNormalizer form_;
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}

  void normalize(std::string& text, std::string&, SegmentEdges edges) const override {
    if (edges.is_first && !text.empty()) {
      text.insert(0, prefix_);
    }
  }

  // The worst case is a text of one byte.
  double growth_max() const override { return static_cast<double>(prefix_.size() + 1); }
  bool keeps_start(std::string_view) const override { return true; }

 private:
  const std::string prefix_;
};

class StripNormalizer final : public Normalizer {
 public:
  explicit StripNormalizer(StripOptions options) : options_(options) {}

  void normalize(std::string& text, std::string&, SegmentEdges edges) const override {
    std::size_t begin = 0;
    std::size_t end = text.size();
    while (options_.left && edges.is_first && begin < end) {
      const Utf8Char first = utf8_char_at(text, begin);
      if (!is_in_class(first.code_point, CharacterClass::Space)) {
        break;
      }
      begin += first.size;
    }
    while (options_.right && edges.is_last && end > begin) {
      const Utf8Char last = utf8_char_before(text, end);
      if (!is_in_class(last.code_point, CharacterClass::Space)) {
        break;
      }
      end -= last.size;
    }
    text.erase(end);
    text.erase(0, begin);
  }

  bool keeps_start(std::string_view) const override { return !options_.left; }

 private:
  const StripOptions options_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(Regex pattern, std::string content, std::size_t match_size_min)
      : pattern_(std::move(pattern)),
        content_(std::move(content)),
        match_size_min_(match_size_min) {}

  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    spare.clear();
    std::size_t copied = 0;
    pattern_.for_each_match(text, [&](std::size_t begin, std::size_t end) {
      spare.append(text, copied, begin - copied);
      spare.append(content_);
      copied = end;
    });
    spare.append(text, copied);
    text.swap(spare);
  }

  // A longer match may lie across the cut. One of a single byte is that byte and no more.
  bool allows_cuts() const override { return match_size_min_ == 1; }

  bool keeps_start(std::string_view mark) const override {
    return !mark.empty() && std::string_view(content_).substr(0, mark.size()) == mark;
  }

  double growth_max() const override {
    return replacement_growth(match_size_min_, content_.size());
  }

 private:
  const Regex pattern_;
  const std::string content_;
  const std::size_t match_size_min_;
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  void normalize(std::string& text, std::string& spare, SegmentEdges) const override {
    spare.clear();
    append_byte_characters(text, spare);
    text.swap(spare);
  }

  double growth_max() const override { return 2; }
  bool keeps_start(std::string_view) const override { return true; }

  // No space is left where the text was cut, which a later add_prefix_space looks for.
  bool allows_cuts() const override { return false; }
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<const Normalizer>> steps)
      : steps_(std::move(steps)) {}

  void normalize(std::string& text, std::string& spare, SegmentEdges edges) const override {
    for (const auto& step : steps_) {
      step->normalize(text, spare, edges);
    }
  }

  bool allows_cuts() const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->allows_cuts(); });
  }

  bool keeps_start(std::string_view mark) const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [&](const auto& step) { return step->keeps_start(mark); });
  }

  double growth_max() const override {
    // Factors multiply, as each step may lengthen what the one before has made. A long list of
    // them is how a hostile file would ask for memory; the reader refuses it by this product.
    double growth = 1;
    for (const auto& step : steps_) {
      growth *= step->growth_max();
    }
    return growth;
  }

 private:
  const std::vector<std::unique_ptr<const Normalizer>> steps_;
};

}  // namespace

std::unique_ptr<const Normalizer> make_lowercase_normalizer() {
  return std::make_unique<LowercaseNormalizer>();
}

std::unique_ptr<const Normalizer> make_strip_accents_normalizer() {
  return std::make_unique<StripAccentsNormalizer>();
}

Result<std::unique_ptr<const Normalizer>> make_unicode_normalizer(NormalizationForm form) {
  const auto normalizer = MUSTER_TRY(UnicodeNormalizer::make(form));
  return std::unique_ptr<const Normalizer>(std::make_unique<FormNormalizer>(normalizer));
}

std::unique_ptr<const Normalizer> make_prepend_normalizer(std::string prefix) {
  return std::make_unique<PrependNormalizer>(std::move(prefix));
}

std::unique_ptr<const Normalizer> make_strip_normalizer(StripOptions options) {
  return std::make_unique<StripNormalizer>(options);
}

std::unique_ptr<const Normalizer> make_replace_normalizer(Regex pattern, std::string content,
                                                          std::size_t match_size_min) {
  return std::make_unique<ReplaceNormalizer>(std::move(pattern), std::move(content),
                                             match_size_min);
}

double replacement_growth(std::size_t match_size_min, std::size_t content_size) {
  const auto content = static_cast<double>(content_size);
  return match_size_min == 0 ? 1 + content
                             : std::max(1.0, content / static_cast<double>(match_size_min));
}

std::unique_ptr<const Normalizer> make_byte_level_normalizer() {
  return std::make_unique<ByteLevelNormalizer>();
}

std::unique_ptr<const Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<const Normalizer>> steps) {
  return std::make_unique<NormalizerSequence>(std::move(steps));
}

}  // namespace muster
