// Lines by poll and read: a signal ends the wait, where a stream of the library would go on.

#include "cli/message_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace muster {
namespace {

constexpr int kLookMs = 100;  // a signal that came before the wait is seen as soon
constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::size_t kBytesMost = 16U << 20U;  // no context is so long
// What is typed behind these bytes of a line is dropped. Source: termios(3), "Canonical mode".
constexpr std::size_t kTerminalLine = 4095;

Error too_long() {
  return {ErrorKind::InvalidArgument, "standard input: a message of more than 16 MiB"};
}

}  // namespace

MessageReader::MessageReader(int fd, std::function<void(bool is_first)> on_prompt)
    : fd_(fd), is_terminal_(::isatty(fd) != 0), on_prompt_(std::move(on_prompt)) {}

Result<MessageReader::Step> MessageReader::read_line(const std::function<bool()>& is_interrupted,
                                                     std::string& line) {
  for (;;) {
    const auto end = buffer_.find('\n', std::exchange(searched_, buffer_.size()));
    if (end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      searched_ = 0;
      if (line.ends_with('\r')) line.pop_back();
      return Step::Line;
    }
    if (is_at_end_) {
      if (buffer_.empty()) return Step::End;
      line = std::exchange(buffer_, {});
      searched_ = 0;
      return Step::Line;
    }
    if (buffer_.size() > kBytesMost) return too_long();
    if (is_interrupted()) {
      buffer_.clear();
      searched_ = 0;
      return Step::Interrupted;
    }
    pollfd ready{fd_, POLLIN, 0};
    const auto count = ::poll(&ready, 1, kLookMs);
    if (count < 0 && errno != EINTR) return system_error("standard input", "read", errno);
    if (count <= 0 || is_interrupted()) continue;
    std::array<char, 4096> bytes;
    const auto size = ::read(fd_, bytes.data(), bytes.size());
    if (size < 0 && errno != EINTR && errno != EAGAIN) {
      return system_error("standard input", "read", errno);
    }
    if (size == 0) is_at_end_ = true;
    if (size > 0) buffer_.append(bytes.data(), static_cast<std::size_t>(size));
  }
}

Result<MessageReader::Outcome> MessageReader::next(const std::function<bool()>& is_interrupted) {
  Message message;
  bool is_quoted = false;
  for (bool is_first = true;; is_first = false) {
    on_prompt_(is_first);
    std::string line;
    const auto step = MUSTER_TRY(read_line(is_interrupted, line));
    if (step == Step::Interrupted) return Outcome{.why = Why::Interrupted};
    if (step == Step::End) {
      if (is_first) return Outcome{.why = Why::End};
      return Outcome{.why = Why::Message, .message = std::move(message)};
    }
    message.may_be_cut |= is_terminal_ && line.size() >= kTerminalLine;
    if (message.text.size() + line.size() > kBytesMost) return too_long();
    if (!is_first) message.text += '\n';
    std::string_view rest = line;
    if (is_first && rest.starts_with(kQuotes)) {
      is_quoted = true;
      rest.remove_prefix(kQuotes.size());
    }
    if (is_quoted) {
      const bool is_last = rest.ends_with(kQuotes);
      if (is_last) rest.remove_suffix(kQuotes.size());
      message.text += rest;
      if (!is_last) continue;
      return Outcome{.why = Why::Message, .message = std::move(message)};
    }
    if (is_first) message.is_command = rest.starts_with('/');
    const bool goes_on = rest.ends_with('\\');
    if (goes_on) rest.remove_suffix(1);
    message.text += rest;
    if (goes_on) continue;
    return Outcome{.why = Why::Message, .message = std::move(message)};
  }
}

}  // namespace muster
