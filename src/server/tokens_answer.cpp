// Answers of tokens, a part at a time: a text of few bytes may have as many tokens, each far longer
// in the answer.

#include "server/tokens_answer.h"

#include <utility>

namespace muster {

std::size_t count_tokens(const std::vector<TokenizedText>& texts) {
  std::size_t count = 0;
  for (const auto& text : texts) count += text.ids.size();
  return count;
}

TokensAnswer::TokensAnswer(std::vector<TokenizedText> texts, TokensForm form)
    : texts_(std::move(texts)),
      form_(std::move(form)),
      token_count_(count_tokens(texts_)),
      body_(std::move(form_.before)) {}

bool TokensAnswer::write(std::size_t token_count) {
  std::size_t written = 0;
  while (next_ < texts_.size()) {
    const auto text = std::exchange(texts_[next_], {});  // frees it as the answer grows
    form_.append(next_++, text, body_);
    constexpr std::size_t kOfAText = 8;  // what an empty one costs beside its tokens
    written += text.ids.size() + text.text.size() / kOfAText + kOfAText;
    if (written >= token_count && next_ < texts_.size()) return false;
  }
  return true;
}

HttpResponse TokensAnswer::take() {
  body_ += form_.after;
  return {.status = 200, .content_type = "application/json", .body = std::move(body_)};
}

}  // namespace muster
