// What is told of one text that was tokenised.

#include "serving/tokenized_text.h"

#include <algorithm>
#include <span>
#include <utility>

namespace muster {
namespace {

void drop_special_tokens(const Tokenizer& tokenizer, std::vector<TokenId>& ids) {
  const auto before = tokenizer.special_tokens_before();
  const auto after = tokenizer.special_tokens_after();
  if (ids.size() < before.size() + after.size()) return;
  ids.resize(ids.size() - after.size());
  ids.erase(ids.begin(), ids.begin() + std::ssize(before));
}

TokenPiece piece_of(const Tokenizer& tokenizer, TokenId id) {
  const std::span one(&id, 1);
  TokenPiece piece{.text = tokenizer.decode(one, /*skip_special_tokens=*/false)};
  piece.is_special = !piece.text.empty() && tokenizer.decode(one, true).empty();
  return piece;
}

}  // namespace

TokenizedText tokenized_text(const Tokenizer& tokenizer, EncodedText encoded,
                             TokenizedOptions options) {
  TokenizedText text{.ids = std::move(encoded.ids), .is_truncated = encoded.is_truncated};
  if (!options.has_special_tokens) drop_special_tokens(tokenizer, text.ids);
  if (!options.wants_pieces) return text;
  text.pieces.reserve(text.ids.size());
  for (const auto id : text.ids) text.pieces.push_back(piece_of(tokenizer, id));
  return text;
}

}  // namespace muster
