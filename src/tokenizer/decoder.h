#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// One step from the texts of tokens back to text; the results of the last are joined.
///
/// Threads: immutable.
class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual std::vector<std::string> decode(std::vector<std::string> tokens) const = 0;
};

/// A token without the prefix gets a space before it; `cleanup` takes spaces from before signs.
struct WordPieceDecoderOptions {
  std::string prefix = "##";
  bool cleanup = true;
};
std::unique_ptr<const Decoder> make_wordpiece_decoder(WordPieceDecoderOptions options);

/// The byte alphabet back to bytes; what is then no UTF-8 becomes U+FFFD.
std::unique_ptr<const Decoder> make_byte_level_decoder();

/// All tokens joined into one.
std::unique_ptr<const Decoder> make_fuse_decoder();

/// The suffix of words becomes a space, but nothing at the end.
std::unique_ptr<const Decoder> make_bpe_decoder(std::string suffix);

/// The marks of Metaspace become spaces, or nothing in the first token if `drops_first`.
std::unique_ptr<const Decoder> make_metaspace_decoder(std::string mark, bool drops_first);

/// One after the other.
std::unique_ptr<const Decoder> make_decoder_sequence(
    std::vector<std::unique_ptr<const Decoder>> steps);

/// `text` with each broken part of UTF-8 replaced by U+FFFD, one for each maximal subpart.
/// Source: The Unicode Standard 15.0, section 3.9, "U+FFFD Substitution of Maximal Subparts".
std::string replace_invalid_utf8(std::string_view text);

}  // namespace muster
