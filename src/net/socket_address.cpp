// IPv4 and IPv6 behind one type, so that the code that listens and connects has no cases. An
// IPv4 client of an IPv6 socket appears in mapped form, and loopback has to be recognised in
// that form too: access rules depend on it.

#include "net/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>

namespace muster {
namespace {

constexpr std::uint32_t kLoopbackNet = 127;
constexpr int kNetShift = 24;

bool is_loopback_v4(const in_addr& address) {
  return ntohl(address.s_addr) >> kNetShift == kLoopbackNet;
}

}  // namespace

std::optional<SocketAddress> SocketAddress::parse(const std::string& host) {
  SocketAddress address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage_);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage_);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    address.storage_.ss_family = AF_INET;
    address.size_ = sizeof(sockaddr_in);
    return address;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    address.storage_.ss_family = AF_INET6;
    address.size_ = sizeof(sockaddr_in6);
    return address;
  }
  return std::nullopt;
}

SocketAddress SocketAddress::of_socket(int fd) {
  SocketAddress address;
  ::getsockname(fd, address.get(), address.size_in_out());
  return address;
}

std::uint16_t SocketAddress::port() const {
  // The port stands at the same place in both.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
  reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) {
    return is_loopback_v4(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr);
  }
  const auto& address = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return IN6_IS_ADDR_LOOPBACK(&address) != 0;
  constexpr std::size_t kV4At = 12;
  return address.s6_addr[kV4At] == kLoopbackNet;
}

std::string SocketAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> name{};
  const bool is_v6 = family() == AF_INET6;
  const void* const address =
      is_v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr)
            : &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr;
  if (::inet_ntop(family(), address, name.data(), name.size()) == nullptr) return {};
  const std::string host(name.data());
  return (is_v6 ? "[" + host + "]:" : host + ":") + std::to_string(port());
}

}  // namespace muster
