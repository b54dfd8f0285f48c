#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "net/http_message.h"
#include "serving/inference_service.h"

namespace muster {

/// How the tokens of texts become a body.
struct TokensForm {
  std::string before;  // up to the first text
  /// Appends one text, with the comma before it. `index` is its place.
  void (*append)(std::size_t index, const TokenizedText& text, std::string& body) = nullptr;
  std::string after;  // behind the last one
};

/// An answer of tokens, written piece by piece: a body of 16 MB has up to eight million tokens,
/// which a loop that serves others must not write in one go.
///
/// Threads: pure.
class TokensAnswer {
 public:
  TokensAnswer(std::vector<TokenizedText> texts, TokensForm form);

  /// Writes about `token_count` tokens more, whole texts and at least one; true: that was all.
  bool write(std::size_t token_count);

  std::size_t token_count() const { return token_count_; }

  /// After `write` has said true; once.
  HttpResponse take();

 private:
  std::vector<TokenizedText> texts_;
  TokensForm form_;
  std::size_t token_count_ = 0;
  std::size_t next_ = 0;
  std::string body_;
};

/// Of all texts.
std::size_t count_tokens(const std::vector<TokenizedText>& texts);

}  // namespace muster
