#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/split/regex.h"

namespace muster {

/// The text of a token on its way through the steps, or a part of it where it comes in several.
struct TokenPart {
  std::string text;
  bool ends_token = true;
};

/// One step of decoding, token by token. What it gives, joined, does not depend on how the tokens
/// were handed to it.
///
/// Threads: not thread-safe; owned by one reply. Its Decoder must outlive it.
class DecoderStream {
 public:
  virtual ~DecoderStream() = default;

  /// Takes the next part and appends what is certain of the step's own tokens.
  virtual void push(TokenPart part, std::vector<TokenPart>& out) = 0;

  /// Appends what was held back. The last part that was pushed has ended its token.
  virtual void finish(std::vector<TokenPart>& out) = 0;
};

/// One step from the texts of tokens back to text; the results of the last are joined.
///
/// Threads: immutable.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// `continues_text`: other text stands before, so the first token is treated as any other.
  virtual std::unique_ptr<DecoderStream> stream(bool continues_text) const = 0;

  /// All tokens at once.
  std::vector<std::string> decode(const std::vector<std::string>& tokens) const;
};

/// A token without the prefix gets a space before it; `cleanup` takes spaces from before signs.
struct WordPieceDecoderOptions {
  std::string prefix = "##";
  bool cleanup = true;
};
std::unique_ptr<const Decoder> make_wordpiece_decoder(WordPieceDecoderOptions options);

/// The byte alphabet back to bytes; what is then no UTF-8 becomes U+FFFD. Held back: the beginning
/// of a character.
std::unique_ptr<const Decoder> make_byte_level_decoder();

/// Runs of `<0x0A>` back to bytes; a run that is no UTF-8 becomes one U+FFFD a byte. Held back: a
/// run until it ends.
std::unique_ptr<const Decoder> make_byte_fallback_decoder();

/// All tokens joined into one.
std::unique_ptr<const Decoder> make_fuse_decoder();

/// The suffix of words becomes a space, but nothing at the end. Held back: the last token.
std::unique_ptr<const Decoder> make_bpe_decoder(std::string suffix);

/// The marks of Metaspace become spaces, or nothing in the first token if `drops_first`.
std::unique_ptr<const Decoder> make_metaspace_decoder(std::string mark, bool drops_first);

/// What the pattern matches within a token becomes `content`.
std::unique_ptr<const Decoder> make_replace_decoder(Regex pattern, std::string content);

/// Takes up to `start` and `stop` characters like `content` from both ends of each token. Held
/// back: such characters at the end of what has come of a token.
struct StripDecoderOptions {
  std::string content = " ";  // one character
  std::uint64_t start = 0;
  std::uint64_t stop = 0;
};
std::unique_ptr<const Decoder> make_strip_decoder(StripDecoderOptions options);

/// One after the other.
std::unique_ptr<const Decoder> make_decoder_sequence(
    std::vector<std::unique_ptr<const Decoder>> steps);

/// `text` with each broken part of UTF-8 replaced by U+FFFD, one for each maximal subpart.
/// Source: The Unicode Standard 15.0, section 3.9, "U+FFFD Substitution of Maximal Subparts".
std::string replace_invalid_utf8(std::string_view text);

/// Bytes at the end of `text` that are the beginning of a character and may become one.
std::size_t unfinished_utf8_size(std::string_view text);

}  // namespace muster
