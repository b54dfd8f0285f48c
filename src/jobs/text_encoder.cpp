// A text as its model's training saw it: the prompt in front, lower case where the model asks for
// it, then tokens. A text that needs neither is not copied. The prompt is kept as it is written;
// only the text is put in lower case.

#include "jobs/text_encoder.h"

#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <utility>

namespace muster {
namespace {

// Lower case as Python's str.lower(), which sentence-transformers applies for `do_lower_case`: full
// mappings without a language. Source: The Unicode Standard, section 3.13, toLowercase.
void append_lowercase(std::string_view text, std::string& out) {
  const auto size = static_cast<std::int32_t>(text.size());
  icu::UnicodeString::fromUTF8({text.data(), size})
      .toLower(icu::Locale::getRoot())
      .toUTF8String(out);
}

}  // namespace

TextEncoder::TextEncoder(std::shared_ptr<const Tokenizer> tokenizer, std::string prompt,
                         bool lowercase, std::uint32_t length_max)
    : tokenizer_(std::move(tokenizer)),
      scratch_(tokenizer_->make_scratch()),
      prompt_(std::move(prompt)),
      lowercase_(lowercase),
      length_max_(length_max) {}

Tokenizer::Encoded TextEncoder::encode(std::string_view prompt, std::string_view text,
                                       TruncationSide side, std::vector<TokenId>& ids) {
  ids.clear();
  return tokenizer_->encode(prepared(prompt, text), length_max_, *scratch_, ids, side);
}

std::string_view TextEncoder::prepared(std::string_view prompt, std::string_view text) {
  if (prompt.empty() && !lowercase_) return text;
  buffer_ = prompt;
  if (lowercase_) {
    append_lowercase(text, buffer_);
  } else {
    buffer_ += text;
  }
  return buffer_;
}

}  // namespace muster
