#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster {

class DecoderStream;

struct TextStreamOptions {
  bool skips_special_tokens = true;
  /// The tokens follow a prompt: the space that a first word is written with stays, where decoding
  /// by itself drops it (SentencePiece).
  bool continues_text = false;
};

/// Text of ids that come one by one, each part as soon as it is certain.
///
/// What `push` returns never ends within a UTF-8 character, and all that `push` and `finish`
/// return, joined, is what `Tokenizer::decode` gives for all ids at once. Held back are the bytes
/// of a character that is not complete; a run of byte tokens (`<0xE4>`) until a token that is none,
/// as the library replaces the whole run when it is no UTF-8; and a last token that would lose a
/// suffix
/// (`</w>`).
///
/// Threads: not thread-safe; owned by one reply. The tokenizer must outlive it.
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, TextStreamOptions options = {});
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  /// The text that is certain now and was not before. Ids without a token give none.
  std::string push(TokenId id);

  /// What was held back. Nothing may be pushed behind it.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  TextStreamOptions options_;
  std::unique_ptr<DecoderStream> stream_;
};

}  // namespace muster
