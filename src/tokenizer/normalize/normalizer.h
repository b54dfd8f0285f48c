#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/unicode_normalization.h"
#include "tokenizer/split/regex.h"

namespace muster {

/// Which ends of a segment a part of it holds: a long segment is normalised in parts.
struct SegmentEdges {
  bool is_first = true;
  bool is_last = true;
};

/// One step that rewrites text before it is split.
///
/// Threads: immutable; the caller owns the text and the spare buffer.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  /// Rewrites `text` in place; `spare` is a buffer to work in.
  virtual void normalize(std::string& text, std::string& spare, SegmentEdges edges) const = 0;

  /// Whether a segment may be cut before a space or line feed that stands between two letters,
  /// digits or ASCII signs, and its parts normalised one by one, with the same result.
  virtual bool allows_cuts() const { return true; }

  /// How many bytes can come out of one, at most: a chain of steps that lengthen is refused.
  virtual double growth_max() const { return 1; }

  /// Whether the first character that comes out is the first that went in, or what became of it; or
  /// else `mark`, which then needs no other before it.
  virtual bool keeps_start(std::string_view mark) const = 0;

  /// Whether every Chinese character comes out with a space on both sides.
  virtual bool isolates_chinese() const { return false; }
};

/// Source: BertNormalizer of huggingface/tokenizers; Devlin et al. 2018, BasicTokenizer.
struct BertNormalizerOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};
Result<std::unique_ptr<const Normalizer>> make_bert_normalizer(
    const BertNormalizerOptions& options);

/// Each character's full lower-case form, without regard to its neighbours.
std::unique_ptr<const Normalizer> make_lowercase_normalizer();

/// Drops combining marks; no decomposition of its own.
std::unique_ptr<const Normalizer> make_strip_accents_normalizer();

/// Errors: Internal when ICU has no data.
Result<std::unique_ptr<const Normalizer>> make_unicode_normalizer(NormalizationForm form);

/// Puts `prefix` before a text that is not empty.
std::unique_ptr<const Normalizer> make_prepend_normalizer(std::string prefix);

/// Drops white space from the chosen ends.
struct StripOptions {
  bool left = true;
  bool right = true;
};
std::unique_ptr<const Normalizer> make_strip_normalizer(StripOptions options);

/// Puts `content` in place of each match of a pattern that is at least `match_size_min` bytes long.
std::unique_ptr<const Normalizer> make_replace_normalizer(Regex pattern, std::string content,
                                                          std::size_t match_size_min = 0);

/// Writes each byte as the character that stands for it (byte_alphabet.h).
std::unique_ptr<const Normalizer> make_byte_level_normalizer();

/// Replaces grapheme clusters of at most five bytes, and else characters, by the rules of
/// sentencepiece. Of a cluster only the front has to be a key, and the rest of it then goes.
/// Source: the crate spm_precompiled, normalize_string; normalizers/precompiled.rs of
/// huggingface/tokenizers.
std::unique_ptr<const Normalizer> make_precompiled_normalizer(Charsmap rules);

/// Drops control characters; line ends and invisible characters become spaces.
std::unique_ptr<const Normalizer> make_nmt_normalizer();

/// One after the other.
std::unique_ptr<const Normalizer> make_normalizer_sequence(
    std::vector<std::unique_ptr<const Normalizer>> steps);

/// How much longer a text gets when each match of at least `match_size_min` bytes becomes
/// `content_size` bytes. An empty match stands beside a character, so it adds to it.
double replacement_growth(std::size_t match_size_min, std::size_t content_size);

/// Whether BertNormalizer puts spaces around the character. Source: BasicTokenizer of Devlin et al.
/// 2018, with the ranges of huggingface/tokenizers (which leave out U+2B820 to U+2B91F).
bool is_bert_chinese(char32_t code_point);

}  // namespace muster
