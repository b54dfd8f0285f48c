#pragma once

#include "jobs/text_encoding.h"
#include "serving/inference_service.h"
#include "tokenizer/tokenizer.h"

namespace muster {

struct TokenizedOptions {
  bool has_special_tokens = true;  // false: without those that the tokenizer puts around a text
  bool wants_pieces = false;
};

/// What is told of one text that was tokenised. A piece is special when the tokenizer leaves it out
/// of decoded text.
///
/// Threads: pure. Cost: with pieces some microseconds a token.
TokenizedText tokenized_text(const Tokenizer& tokenizer, EncodedText encoded,
                             TokenizedOptions options);

}  // namespace muster
