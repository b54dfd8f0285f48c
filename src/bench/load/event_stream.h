#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// Puts server-sent events together from pieces of a stream, and gives the data of each.
///
/// Lines end with LF, CR or CR LF; comments and fields other than `data` are passed over.
/// An event is at most `kEventBytesMost` long. Threads: not thread-safe.
/// Source: HTML Standard, section 9.2.6 (interpreting an event stream).
class EventStream {
 public:
  static constexpr std::size_t kEventBytesMost = 16 << 20;

  void put(std::string_view bytes);

  /// The data of the next whole event; nullopt when there is none yet.
  std::optional<std::string> next();

  /// An event was longer than is allowed: nothing more is given.
  bool is_too_long() const { return is_too_long_; }
  /// Bytes have come that belong to an event without an end.
  bool is_in_event() const { return !line_.empty() || has_data_; }

 private:
  void end_line();

  std::string unread_;
  std::size_t at_ = 0;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool is_after_cr_ = false;
  bool has_event_ = false;  // `data_` is whole
  bool is_too_long_ = false;
};

}  // namespace muster
