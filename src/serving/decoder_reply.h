#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizer/stop_strings.h"
#include "tokenizer/text_stream.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// The text of a reply whose tokens come one by one: whole characters, up to the first stop string.
///
/// Threads: not thread-safe; owned by one call. The tokenizer outlives it.
class DecoderReply {
 public:
  /// continues_text: the tokens follow a text instead of a chat template's.
  ///
  /// Errors: InvalidArgument for an empty stop string.
  static Result<DecoderReply> make(const Tokenizer& tokenizer, std::vector<std::string> stops,
                                   bool continues_text);

  /// The text that is certain now and was not before.
  std::string push(std::uint32_t token);

  /// What was held back, at the end of the tokens.
  std::string finish();

  /// A stop string has come; what follows counts no more.
  bool is_stopped() const { return is_stopped_; }

 private:
  DecoderReply(TextStream stream, StopStrings stops)
      : stream_(std::move(stream)), stops_(std::move(stops)) {}
  std::string let_through(std::string_view part);

  TextStream stream_;
  StopStrings stops_;
  bool is_stopped_ = false;
};

}  // namespace muster
