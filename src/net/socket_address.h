#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

/// An IPv4 or IPv6 address with a port.
///
/// Threads: a value.
class SocketAddress {
 public:
  SocketAddress() = default;

  /// "127.0.0.1", "::1"; port 0.
  static std::optional<SocketAddress> parse(const std::string& host);
  /// The own end of a socket.
  static SocketAddress of_socket(int fd);

  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// 127.0.0.0/8, ::1, and the former within the latter's form (::ffff:127.0.0.1).
  bool is_loopback() const;
  /// "127.0.0.1:80", "[::1]:80".
  std::string text() const;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  socklen_t* size_in_out() { return &size_; }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = sizeof(sockaddr_storage);
};

}  // namespace muster
