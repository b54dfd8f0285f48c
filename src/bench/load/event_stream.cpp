// Server-sent events from bytes that come in any pieces: a line may end between two reads, and so
// may the two bytes of its end. Events are given out one at a time, and only `data` is kept, as the
// APIs use no other field. Both the unread bytes and one event are bounded, so a server cannot fill
// the memory of its client. Source: WHATWG, HTML, section 9.2.6.

#include "bench/load/event_stream.h"

namespace muster {

void EventStream::put(std::string_view bytes) {
  if (is_too_long_) return;
  unread_.erase(0, at_);
  at_ = 0;
  unread_ += bytes;
  is_too_long_ = unread_.size() > kEventBytesMost;
}

std::optional<std::string> EventStream::next() {
  while (at_ < unread_.size() && !is_too_long_) {
    const char letter = unread_[at_++];
    const bool ends_pair = letter == '\n' && is_after_cr_;
    is_after_cr_ = letter == '\r';
    if (ends_pair) continue;
    if (letter != '\n' && letter != '\r') {
      line_ += letter;
      is_too_long_ = line_.size() + data_.size() > kEventBytesMost;
      continue;
    }
    end_line();
    if (!has_event_) continue;
    has_event_ = has_data_ = false;
    auto event = std::move(data_);
    data_.clear();
    return event;
  }
  return std::nullopt;
}

// An empty line ends an event; an event without data is none and is passed over.
void EventStream::end_line() {
  constexpr std::string_view kData = "data";
  if (line_.empty()) {
    has_event_ = has_data_;
  } else if (line_.starts_with(kData) &&
             (line_.size() == kData.size() || line_[kData.size()] == ':')) {
    auto value = std::string_view(line_).substr(std::min(line_.size(), kData.size() + 1));
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  }
  line_.clear();
}

}  // namespace muster
