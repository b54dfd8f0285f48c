// A thin layer over the decoder's streams: ids become token texts, special tokens drop out, and
// the parts that are certain are joined. Without a decoder there is nothing to hold back. Then
// only the space between tokens matters, and `continues_text` doubles as the mark that one has
// come before.

#include "tokenizer/text_stream.h"

#include <utility>

#include "tokenizer/decoder.h"

namespace muster {
namespace {

std::string joined(std::vector<TokenPart>& parts) {
  std::string text;
  for (auto& part : parts) text.append(part.text);
  return text;
}

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, TextStreamOptions options)
    : tokenizer_(&tokenizer),
      options_(options),
      stream_(tokenizer.decoder_stream(options.continues_text)) {}

TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::string TextStream::push(TokenId id) {
  const auto token = tokenizer_->token_text(id);
  if (!token || (options_.skips_special_tokens && tokenizer_->is_special(id))) return {};
  if (stream_ == nullptr) {
    // Without a decoder the library joins tokens by spaces.
    const bool is_first = !std::exchange(options_.continues_text, true);
    return (is_first ? "" : " ") + std::string(*token);
  }
  std::vector<TokenPart> parts;
  stream_->push({std::string(*token)}, parts);
  return joined(parts);
}

std::string TextStream::finish() {
  std::vector<TokenPart> parts;
  if (stream_ != nullptr) stream_->finish(parts);
  return joined(parts);
}

}  // namespace muster
