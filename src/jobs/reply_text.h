#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "tokenizer/stop_strings.h"
#include "tokenizer/text_stream.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// The text of one reply, from its tokens as they come, up to a stop string.
///
/// Threads: not thread-safe.
class ReplyText {
 public:
  using OnText = std::function<Status(std::string_view)>;

  /// continues_text: the reply goes on where a text breaks off, so that a space before its first
  /// word stays. on_text: text that is certain; never ends within a character.
  ReplyText(const Tokenizer& tokenizer, bool continues_text, StopStrings stops, OnText on_text)
      : stream_(tokenizer, {.continues_text = continues_text}),
        stops_(std::move(stops)),
        on_text_(std::move(on_text)) {}

  /// Errors: those of on_text.
  Status push(TokenId token) {
    ++token_count_;
    return let_through(stops_.push(stream_.push(token)));
  }

  /// What was held back; nothing behind a stop string.
  Status finish() {
    MUSTER_TRY(let_through(stops_.push(stream_.finish())));
    return is_stopped_ ? Status(Done{}) : on_text_(stops_.finish());
  }

  bool is_stopped() const { return is_stopped_; }
  std::uint32_t token_count() const { return token_count_; }

 private:
  Status let_through(const StopStrings::Step& step) {
    is_stopped_ |= step.stop.has_value();
    return step.text.empty() ? Status(Done{}) : on_text_(step.text);
  }

  TextStream stream_;
  StopStrings stops_;
  OnText on_text_;
  std::uint32_t token_count_ = 0;
  bool is_stopped_ = false;
};

}  // namespace muster
