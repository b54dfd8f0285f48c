// Tokens to text, and what of it a client sees: first characters are made whole, then stop strings
// are looked for.

#include "serving/decoder_reply.h"

#include <utility>

namespace muster {

Result<DecoderReply> DecoderReply::make(const Tokenizer& tokenizer, std::vector<std::string> stops,
                                        bool continues_text) {
  auto found = MUSTER_TRY(StopStrings::make(std::move(stops)));
  return DecoderReply(TextStream(tokenizer, {.continues_text = continues_text}), std::move(found));
}

std::string DecoderReply::push(std::uint32_t token) { return let_through(stream_.push(token)); }

std::string DecoderReply::finish() {
  auto text = let_through(stream_.finish());
  return is_stopped_ ? text : text + stops_.finish();
}

std::string DecoderReply::let_through(std::string_view part) {
  auto step = stops_.push(part);
  is_stopped_ |= step.stop.has_value();
  return std::move(step.text);
}

}  // namespace muster
