#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/frame.h"

namespace muster {

/// Frames over a non-blocking stream socket, for a loop that waits with poll(2).
///
/// Threads: not thread-safe; owned by one loop.
class FrameChannel {
 public:
  /// Makes `socket` non-blocking.
  explicit FrameChannel(UniqueFd socket);

  int fd() const { return socket_.get(); }
  bool wants_write() const { return !outgoing_.empty(); }

  /// Ends the stream; the peer reads its end.
  void close() { socket_.reset(); }

  /// Queues a frame and writes what the socket takes at once.
  ///
  /// Errors: Unavailable when the peer is gone.
  Status send(std::uint8_t type, std::uint64_t id, std::vector<std::byte> payload);

  /// Writes what the socket takes; call when it is writable.
  Status flush();

  /// Reads what is there and calls `on_frame` for each whole frame; false at the end of the stream,
  /// which `on_frame` may bring about by `close`.
  ///
  /// Errors: Corrupt, Unavailable (reset by the peer), those of `on_frame`.
  Result<bool> read_available(const FrameAssembler::OnFrame& on_frame);

 private:
  struct Outgoing {
    std::array<std::byte, kFrameHeaderSize> header;
    std::vector<std::byte> payload;
  };

  UniqueFd socket_;
  FrameAssembler incoming_;
  std::deque<Outgoing> outgoing_;
  std::size_t sent_ = 0;  // bytes of the first outgoing frame that are written
};

/// The blocking forms, for a worker's threads. `write_frame` sends header and payload parts in one
/// gather write; the caller keeps frames of several threads apart with a lock.
///
/// Errors: Unavailable when the peer is gone.
Status write_frame(int fd, std::uint8_t type, std::uint64_t id,
                   std::span<const std::span<const std::byte>> parts);

/// Reads frames until the end of the stream, calling `on_frame`, and `before_read` (if any) when
/// all that has come is handled.
Status read_frames(int fd, const FrameAssembler::OnFrame& on_frame,
                   const std::function<void()>& before_read = {});

}  // namespace muster
