#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// What a person types, message by message: a line; lines that end in a backslash and the one
/// behind them; or all between two """.
///
/// Threads: not thread-safe.
class MessageReader {
 public:
  struct Message {
    std::string text;         // without the end of its last line
    bool is_command = false;  // its first line begins with /, outside of quotes
    bool may_be_cut = false;  // a line of it is as long as a terminal passes on
  };
  enum class Why : std::uint8_t { Message, End, Interrupted };
  struct Outcome {
    Why why = Why::End;
    Message message = {};
  };

  /// on_prompt: before each line that is waited for; is_first: none of the message is there.
  MessageReader(int fd, std::function<void(bool is_first)> on_prompt);

  /// Waits for the next message. What was typed of one that is interrupted is dropped.
  ///
  /// Errors: InvalidArgument for a message of more than 16 MiB, those of reading.
  Result<Outcome> next(const std::function<bool()>& is_interrupted);

 private:
  enum class Step : std::uint8_t { Line, End, Interrupted };
  Result<Step> read_line(const std::function<bool()>& is_interrupted, std::string& line);

  const int fd_;
  const bool is_terminal_;
  const std::function<void(bool)> on_prompt_;
  std::string buffer_;
  std::size_t searched_ = 0;  // bytes of it that hold no line end
  bool is_at_end_ = false;
};

}  // namespace muster
