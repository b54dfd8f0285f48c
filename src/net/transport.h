#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace muster {

/// What became of a read, a write or a handshake that did not wait.
struct IoOutcome {
  enum class Kind : std::uint8_t {
    Done,    // `size` bytes, at least one
    Later,   // when the descriptor is readable, or writable with `needs_write`
    End,     // the peer ended its side
    Failed,  // the stream is of no more use
  };
  Kind kind = Kind::Failed;
  std::size_t size = 0;
  bool needs_write = false;
  bool is_plain_http = false;  // Failed: the peer speaks HTTP where TLS is spoken
};

/// The bytes of a connection, plain or through TLS, over a non-blocking socket. It owns no buffer
/// while it is idle.
///
/// Threads: not thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual IoOutcome handshake() = 0;
  virtual IoOutcome read(std::span<char> buffer) = 0;
  /// `head` and then `body`, in one piece where that is possible. After Later it is called again
  /// with the same bytes.
  virtual IoOutcome write(std::string_view head, std::string_view body) = 0;
  /// Says that nothing more will be sent.
  virtual void end() = 0;
  /// The common name of the certificate that the peer has shown and that was verified; else empty.
  virtual std::string peer_name() const = 0;
  /// Why it failed, where more is known than that it did.
  virtual std::string problem() const = 0;
};

/// Bytes as they are. The descriptor stays the caller's.
std::unique_ptr<Transport> plain_transport(int fd);

}  // namespace muster
