// Plain bytes over a socket. Head and body go out in one sendmsg, without being copied together.
// An interrupted call counts as "later": the loop comes back, and no state is lost.

#include "net/transport.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace muster {
namespace {

iovec part(std::string_view bytes) { return {const_cast<char*>(bytes.data()), bytes.size()}; }

bool is_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(int fd) : fd_(fd) {}

  IoOutcome handshake() override { return {IoOutcome::Kind::Done}; }

  IoOutcome read(std::span<char> buffer) override {
    const auto size = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0) return {IoOutcome::Kind::Done, static_cast<std::size_t>(size)};
    if (size == 0) return {IoOutcome::Kind::End};
    return {is_later() ? IoOutcome::Kind::Later : IoOutcome::Kind::Failed};
  }

  IoOutcome write(std::string_view head, std::string_view body) override {
    std::array<iovec, 2> parts{part(head), part(body)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const auto size = ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size >= 0) return {IoOutcome::Kind::Done, static_cast<std::size_t>(size)};
    return {.kind = is_later() ? IoOutcome::Kind::Later : IoOutcome::Kind::Failed,
            .needs_write = true};
  }

  void end() override { ::shutdown(fd_, SHUT_WR); }

  std::string peer_name() const override { return {}; }
  std::string problem() const override { return {}; }

 private:
  const int fd_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(int fd) { return std::make_unique<PlainTransport>(fd); }

}  // namespace muster
