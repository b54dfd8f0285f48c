// Every splitter turns spans into spans; text is copied only by a step that rewrites it. Each
// also says what a cut in the text would do to its words (CutEffect). A long text may be encoded
// in parts only if that answer allows it. "Unsafe" is the cautious answer of a step whose
// pattern is not known.

#include "tokenizer/split/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tokenizer/normalize/unicode_classes.h"
#include "tokenizer/split/byte_alphabet.h"
#include "tokenizer/utf8.h"

namespace muster {
namespace {

void append_piece(std::size_t begin, std::size_t end, std::vector<Piece>& out) {
  if (begin < end) {
    out.push_back({begin, end});
  }
}

/// Turns the delimiters and what is between them, from `first` on, into pieces.
void apply_behavior(DelimiterBehavior behavior, std::size_t first, std::vector<Piece>& out) {
  const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
  if (behavior == DelimiterBehavior::MergedWithNext) {
    std::reverse(begin, out.end());
  }
  std::size_t kept = first;
  bool was_match = false;
  for (std::size_t i = first; i < out.size(); ++i) {
    const Piece part = out[i];
    bool joins = false;
    if (behavior == DelimiterBehavior::Contiguous) {
      joins = part.is_match == was_match;
    } else if (behavior != DelimiterBehavior::Isolated) {
      joins = part.is_match && !was_match;
    }
    was_match = part.is_match;
    if (behavior == DelimiterBehavior::Removed) {
      if (!part.is_match) {
        out[kept++] = part;
      }
    } else if (joins && kept > first) {
      out[kept - 1].begin = std::min(out[kept - 1].begin, part.begin);
      out[kept - 1].end = std::max(out[kept - 1].end, part.end);
    } else {
      out[kept++] = part;
    }
  }
  out.resize(kept);
  if (behavior == DelimiterBehavior::MergedWithNext) {
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  }
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                           [](const Piece& piece) { return piece.begin == piece.end; }),
            out.end());
}

/// Splits at every character of a class.
class ClassPreTokenizer final : public PreTokenizer {
 public:
  ClassPreTokenizer(CharacterClass delimiter, DelimiterBehavior behavior)
      : delimiter_(delimiter), behavior_(behavior) {}

  void split(Pieces& pieces) const override {
    pieces.split_each([&](std::size_t begin, std::size_t end, std::vector<Piece>& out) {
      const std::size_t first = out.size();
      std::size_t between = begin;
      for_each_utf8_char(pieces.text().substr(begin, end - begin),
                         [&](char32_t c, std::size_t char_begin, std::size_t char_end) {
                           if (is_in_class(c, delimiter_)) {
                             append_piece(between, begin + char_begin, out);
                             out.push_back({begin + char_begin, begin + char_end, true});
                             between = begin + char_end;
                           }
                         });
      append_piece(between, end, out);
      apply_behavior(behavior_, first, out);
    });
  }

  CutEffect cut_effect(CutPlace) const override {
    const bool removes_space =
        delimiter_ == CharacterClass::Space && behavior_ == DelimiterBehavior::Removed;
    return removes_space ? CutEffect::Separates : CutEffect::Transparent;
  }

  bool keeps_text() const override { return behavior_ != DelimiterBehavior::Removed; }

 private:
  const CharacterClass delimiter_;
  const DelimiterBehavior behavior_;
};

/// Whether a character is kept in a word, stands alone, or goes.
enum class Role : std::uint8_t { Word, Alone, Gone };

/// Splits into words by the role of each character: the loop of BertPreTokenizer.
class BertPreTokenizer final : public PreTokenizer {
 public:
  BertPreTokenizer() {
    for (char32_t c = 0; c < ascii_roles_.size(); ++c) {
      ascii_roles_[c] = role_of(c);
    }
  }

  void split(Pieces& pieces) const override {
    pieces.split_each([&](std::size_t begin, std::size_t end, std::vector<Piece>& out) {
      const std::string_view text = pieces.text().substr(0, end);
      std::size_t word = begin;
      for (std::size_t at = begin; at < end;) {
        const auto byte = static_cast<unsigned char>(text[at]);
        std::size_t next = at + 1;
        Role role = Role::Word;
        if (byte < 0x80) {
          role = ascii_roles_[byte];
        } else {
          const Utf8Char c = utf8_char_at(text, at);
          role = role_of(c.code_point);
          next = at + c.size;
        }
        if (role != Role::Word) {
          append_piece(word, at, out);
          if (role == Role::Alone) {
            out.push_back({at, next});
          }
          word = next;
        }
        at = next;
      }
      append_piece(word, end, out);
    });
  }

  CutEffect cut_effect(CutPlace) const override { return CutEffect::Separates; }
  bool removes_space() const override { return true; }

 private:
  static Role role_of(char32_t c) {
    const std::uint32_t classes = character_classes(c);
    if (has_class(classes, CharacterClass::Space)) {
      return Role::Gone;
    }
    return has_class(classes, CharacterClass::Punctuation) ? Role::Alone : Role::Word;
  }

  std::array<Role, 128> ascii_roles_{};
};

class WhitespacePreTokenizer final : public PreTokenizer {
 public:
  void split(Pieces& pieces) const override {
    pieces.split_each([&](std::size_t begin, std::size_t end, std::vector<Piece>& out) {
      std::size_t run = begin;
      std::uint32_t run_kind = 0;
      for_each_utf8_char(pieces.text().substr(begin, end - begin),
                         [&](char32_t c, std::size_t char_begin, std::size_t) {
                           const std::uint32_t kind = kind_of(character_classes(c));
                           if (kind != run_kind) {
                             append_run(run_kind, run, begin + char_begin, out);
                             run = begin + char_begin;
                             run_kind = kind;
                           }
                         });
      append_run(run_kind, run, end, out);
    });
  }

  CutEffect cut_effect(CutPlace) const override { return CutEffect::Separates; }

 private:
  static constexpr std::uint32_t kSpace = 1;
  static constexpr std::uint32_t kWord = 2;
  static constexpr std::uint32_t kSign = 3;

  static std::uint32_t kind_of(std::uint32_t classes) {
    if (has_class(classes, CharacterClass::Word)) {
      return kWord;
    }
    return has_class(classes, CharacterClass::Space) ? kSpace : kSign;
  }

  static void append_run(std::uint32_t kind, std::size_t begin, std::size_t end,
                         std::vector<Piece>& out) {
    if (kind != kSpace) {
      append_piece(begin, end, out);
    }
  }
};

class KnownPreTokenizer final : public PreTokenizer {
 public:
  explicit KnownPreTokenizer(KnownPattern pattern) : pattern_(pattern) {}

  void split(Pieces& pieces) const override {
    pieces.split_each([&](std::size_t begin, std::size_t end, std::vector<Piece>& out) {
      const std::string_view text = pieces.text().substr(begin, end - begin);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t next = piece_end(pattern_, text, at);
        out.push_back({begin + at, begin + next});
        at = next;
      }
    });
  }

  CutEffect cut_effect(CutPlace) const override { return CutEffect::Separates; }
  bool keeps_text() const override { return true; }

 private:
  const KnownPattern pattern_;
};

// The space is put before every piece that lacks one, not only before the first of the text: the
// library does so, and a piece begins behind each added token.
class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  explicit ByteLevelPreTokenizer(const ByteLevelOptions& options) : options_(options) {}

  void split(Pieces& pieces) const override {
    if (options_.add_prefix_space && lacks_space(pieces)) {
      pieces.rewrite_each([](std::string_view text, std::string& out) {
        if (text.front() != ' ') {
          out.push_back(' ');
        }
        out.append(text);
      });
    }
    if (options_.use_regex) {
      splitter_.split(pieces);
    }
    if (options_.maps_bytes) {
      pieces.rewrite_each(append_byte_characters);
    }
  }

  CutEffect cut_effect(CutPlace place) const override {
    if (options_.add_prefix_space && place == CutPlace::LineFeed) {
      return CutEffect::Unsafe;  // the second part would get a space
    }
    return options_.use_regex ? CutEffect::Separates : CutEffect::Transparent;
  }

  bool keeps_text() const override { return true; }

 private:
  static bool lacks_space(const Pieces& pieces) {
    return std::any_of(pieces.list().begin(), pieces.list().end(),
                       [&](const Piece& piece) { return pieces.at(piece).front() != ' '; });
  }

  const ByteLevelOptions options_;
  const KnownPreTokenizer splitter_{KnownPattern::Gpt2};
};

class SplitPreTokenizer final : public PreTokenizer {
 public:
  SplitPreTokenizer(Regex pattern, SplitOptions options)
      : pattern_(std::move(pattern)), options_(options) {}

  void split(Pieces& pieces) const override {
    pieces.split_each([&](std::size_t begin, std::size_t end, std::vector<Piece>& out) {
      const std::size_t first = out.size();
      std::size_t between = begin;
      const auto append = [&](std::size_t part_begin, std::size_t part_end, bool is_match) {
        out.push_back({part_begin, part_end, is_match != options_.invert});
      };
      pattern_.for_each_match(pieces.text().substr(begin, end - begin),
                              [&](std::size_t match_begin, std::size_t match_end) {
                                if (between != begin + match_begin) {
                                  append(between, begin + match_begin, false);
                                }
                                append(begin + match_begin, begin + match_end, true);
                                between = begin + match_end;
                              });
      if (between != end) {
        append(between, end, false);
      }
      apply_behavior(options_.behavior, first, out);
    });
  }

  CutEffect cut_effect(CutPlace) const override { return CutEffect::Unsafe; }
  bool keeps_text() const override { return options_.behavior != DelimiterBehavior::Removed; }

 private:
  const Regex pattern_;
  const SplitOptions options_;
};

class PreTokenizerSequence final : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<const PreTokenizer>> steps)
      : steps_(std::move(steps)) {}

  void split(Pieces& pieces) const override {
    for (const auto& step : steps_) {
      step->split(pieces);
    }
  }

  CutEffect cut_effect(CutPlace place) const override {
    // One step that a cut could change spoils it for all; else it is enough that any one
    // separates.
    CutEffect effect = CutEffect::Transparent;
    for (const auto& step : steps_) {
      if (step->cut_effect(place) == CutEffect::Unsafe) {
        return CutEffect::Unsafe;
      }
      effect = std::max(effect, step->cut_effect(place));
    }
    return effect;
  }

  bool keeps_text() const override {
    return std::all_of(steps_.begin(), steps_.end(),
                       [](const auto& step) { return step->keeps_text(); });
  }

  std::string_view text_start_mark() const override {
    return steps_.empty() ? std::string_view() : steps_.front()->text_start_mark();
  }

 private:
  const std::vector<std::unique_ptr<const PreTokenizer>> steps_;
};

}  // namespace

void Pieces::reset(std::string_view text, bool begins_text) {
  text_ = text;
  begins_text_ = begins_text;
  list_.clear();
  append_piece(0, text.size(), list_);
}

std::unique_ptr<const PreTokenizer> make_bert_pre_tokenizer() {
  return std::make_unique<BertPreTokenizer>();
}

std::unique_ptr<const PreTokenizer> make_whitespace_pre_tokenizer() {
  return std::make_unique<WhitespacePreTokenizer>();
}

std::unique_ptr<const PreTokenizer> make_whitespace_split_pre_tokenizer() {
  return std::make_unique<ClassPreTokenizer>(CharacterClass::Space, DelimiterBehavior::Removed);
}

std::unique_ptr<const PreTokenizer> make_punctuation_pre_tokenizer(DelimiterBehavior behavior) {
  return std::make_unique<ClassPreTokenizer>(CharacterClass::Punctuation, behavior);
}

std::unique_ptr<const PreTokenizer> make_digits_pre_tokenizer(bool individual_digits) {
  return std::make_unique<ClassPreTokenizer>(
      CharacterClass::Numeric,
      individual_digits ? DelimiterBehavior::Isolated : DelimiterBehavior::Contiguous);
}

std::unique_ptr<const PreTokenizer> make_byte_level_pre_tokenizer(const ByteLevelOptions& options) {
  return std::make_unique<ByteLevelPreTokenizer>(options);
}

std::unique_ptr<const PreTokenizer> make_split_pre_tokenizer(Regex pattern, SplitOptions options) {
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), options);
}

std::unique_ptr<const PreTokenizer> make_known_pre_tokenizer(KnownPattern pattern) {
  return std::make_unique<KnownPreTokenizer>(pattern);
}

std::unique_ptr<const PreTokenizer> make_pre_tokenizer_sequence(
    std::vector<std::unique_ptr<const PreTokenizer>> steps) {
  return std::make_unique<PreTokenizerSequence>(std::move(steps));
}

}  // namespace muster
