#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/split/known_patterns.h"
#include "tokenizer/split/regex.h"

namespace muster {

/// A part of a text, or a delimiter found in it.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_match = false;
};

/// The pieces that a text is split into, none of them empty, with the buffers to go on splitting.
///
/// Owner: one thread's scratch.
class Pieces {
 public:
  /// One piece, all of `text`, which must outlive the splitting. `begins_text`: what the caller of
  /// the tokenizer gave begins with it, and normalising took nothing from its front.
  void reset(std::string_view text, bool begins_text = false);

  bool begins_text() const { return begins_text_; }

  std::string_view text() const { return text_; }
  const std::vector<Piece>& list() const { return list_; }
  std::string_view at(const Piece& piece) const {
    return text_.substr(piece.begin, piece.end - piece.begin);
  }

  /// Replaces each piece by what `split(begin, end, out)` appends for it; empty ones are left out.
  template <typename Split>
  void split_each(Split&& split) {
    spare_list_.clear();
    for (const Piece& piece : list_) {
      split(piece.begin, piece.end, spare_list_);
    }
    list_.swap(spare_list_);
  }

  /// Rewrites each piece: `write(text, out)` appends its new form.
  template <typename Write>
  void rewrite_each(Write&& write) {
    spare_text_.clear();
    for (Piece& piece : list_) {
      const std::string_view old = at(piece);
      piece.begin = spare_text_.size();
      write(old, spare_text_);
      piece.end = spare_text_.size();
    }
    own_text_.swap(spare_text_);
    text_ = own_text_;
  }

 private:
  std::string_view text_;
  bool begins_text_ = false;
  std::vector<Piece> list_;
  std::vector<Piece> spare_list_;
  std::string own_text_;
  std::string spare_text_;
};

/// What becomes of the delimiters. Source: SplitDelimiterBehavior of huggingface/tokenizers.
enum class DelimiterBehavior : std::uint8_t {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous,
};

/// Before which character a text is to be cut; it stands between two others that are "solid":
/// letters, digits or ASCII signs. Before a line feed the first of the two is no sign.
enum class CutPlace : std::uint8_t { Space, LineFeed };

/// What a step does with a text that is cut there.
enum class CutEffect : std::uint8_t {
  Unsafe,       // may come out different
  Transparent,  // the same, but for the cut itself
  Separates,    // exactly the same: it splits there anyway
};

/// One step that splits text into words.
///
/// Threads: immutable; the caller owns the pieces.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void split(Pieces& pieces) const = 0;
  virtual CutEffect cut_effect(CutPlace place) const = 0;

  /// The mark that it puts before the first word of a text and no other; empty if it does not.
  virtual std::string_view text_start_mark() const { return {}; }

  /// Whether the words together have no fewer bytes than the text: nothing of it is lost.
  virtual bool keeps_text() const { return false; }

  /// Whether a word ends at every white space, whatever comes before or behind.
  virtual bool removes_space() const { return false; }
};

/// White space removed, punctuation alone.
std::unique_ptr<const PreTokenizer> make_bert_pre_tokenizer();

/// Runs of \w, and runs of what is neither that nor white space.
std::unique_ptr<const PreTokenizer> make_whitespace_pre_tokenizer();

/// White space removed.
std::unique_ptr<const PreTokenizer> make_whitespace_split_pre_tokenizer();

std::unique_ptr<const PreTokenizer> make_punctuation_pre_tokenizer(DelimiterBehavior behavior);

/// Runs of digits, or each digit alone.
std::unique_ptr<const PreTokenizer> make_digits_pre_tokenizer(bool individual_digits);

/// The pattern of GPT-2, with or without. `maps_bytes`: write the pieces in the byte alphabet; the
/// caller says no where the model reads bytes itself.
struct ByteLevelOptions {
  bool add_prefix_space = true;
  bool use_regex = true;
  bool maps_bytes = true;
};
std::unique_ptr<const PreTokenizer> make_byte_level_pre_tokenizer(const ByteLevelOptions& options);

/// Spaces become marks, and each mark begins a word.
/// Source: pre_tokenizers/metaspace.rs of huggingface/tokenizers.
enum class MetaspacePrepend : std::uint8_t { Always, Never, First };
struct MetaspaceOptions {
  std::string replacement = "\u2581";                   // one character
  MetaspacePrepend prepend = MetaspacePrepend::Always;  // a mark before what begins with none
  bool split = true;
};
std::unique_ptr<const PreTokenizer> make_metaspace_pre_tokenizer(MetaspaceOptions options);

/// Each run of marks begins a word; the text is not changed. Exact before a BPE model of which
/// `allows_mark_runs` says so, and much quicker than one word of the whole text.
/// `spaces_are_marks`: the normaliser has made a mark of every space, so a text may be cut there.
std::unique_ptr<const PreTokenizer> make_mark_run_pre_tokenizer(std::string mark,
                                                                bool spaces_are_marks);

/// `invert`: the pattern matches the words, not what is between them.
struct SplitOptions {
  DelimiterBehavior behavior = DelimiterBehavior::Isolated;
  bool invert = false;
};
std::unique_ptr<const PreTokenizer> make_split_pre_tokenizer(Regex pattern, SplitOptions options);

/// A pattern that covers the whole text, each match a piece.
std::unique_ptr<const PreTokenizer> make_known_pre_tokenizer(KnownPattern pattern);

/// One after the other.
std::unique_ptr<const PreTokenizer> make_pre_tokenizer_sequence(
    std::vector<std::unique_ptr<const PreTokenizer>> steps);

}  // namespace muster
