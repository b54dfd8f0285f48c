// Texts and token ids that a client sends are brought to one form. Ids are trusted in nothing: one
// beyond the vocabulary would read outside of the embedding table, and without the special tokens a
// model gives vectors that mean nothing. Cutting removes text and keeps the special tokens on both
// sides.

#include "jobs/text_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace muster {

EncodedText encode_text(TextEncoder& encoder, const TextToEncode& text) {
  EncodedText done;
  done.byte_count = text.byte_count();
  if (text.query != nullptr) {
    const auto pair = encoder.encode_pair(*text.query, text.text, done.ids);
    done.first_segment = pair.first_segment;
    done.is_truncated = pair.is_truncated;
    return done;
  }
  constexpr std::size_t kBytesOfToken = 4;  // about so many
  done.ids.reserve(
      std::min<std::size_t>(text.text.size() / kBytesOfToken + 8, encoder.length_max()));
  done.is_truncated = encoder.encode(text.prompt, text.text, text.side, done.ids).is_truncated;
  return done;
}

EncodedText cut_ids(const TextEncoder& encoder, std::vector<TokenId> ids, TruncationSide side) {
  const std::size_t length_max = encoder.length_max();
  EncodedText done;
  done.is_truncated = ids.size() > length_max;
  if (done.is_truncated) {
    const auto excess = static_cast<std::ptrdiff_t>(ids.size() - length_max);
    const auto& tokenizer = encoder.tokenizer();
    const auto from = side == TruncationSide::Left
                          ? ids.begin() + std::ssize(tokenizer.special_tokens_before())
                          : ids.end() - std::ssize(tokenizer.special_tokens_after()) - excess;
    ids.erase(from, from + excess);
  }
  done.ids = std::move(ids);
  return done;
}

std::optional<std::string> foreign_ids(const Tokenizer& tokenizer, std::uint32_t vocab_size,
                                       const std::vector<TokenId>& ids) {
  // The greatest id decides for all of them.
  const auto worst = *std::max_element(ids.begin(), ids.end());
  if (worst >= vocab_size) {
    return fmt::format("token id {} is not in the vocabulary of {} tokens", worst, vocab_size);
  }
  const auto before = tokenizer.special_tokens_before();
  const auto after = tokenizer.special_tokens_after();
  const auto is_here = [](std::span<const TokenId> special, auto begin) {
    return std::equal(special.begin(), special.end(), begin);
  };
  if (ids.size() >= before.size() + after.size() && is_here(before, ids.begin()) &&
      is_here(after, ids.end() - std::ssize(after))) {
    return std::nullopt;
  }
  std::string must;
  if (!before.empty()) must = fmt::format("begin with {}", fmt::join(before, ", "));
  if (!after.empty()) {
    must += fmt::format("{}end with {}", must.empty() ? "" : " and ", fmt::join(after, ", "));
  }
  return "the token ids of a text must " + must + ", which are the model's special tokens";
}

}  // namespace muster
