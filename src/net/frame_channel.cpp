// Frames over a socket, for a loop that must not block and for threads that may. Header and
// payload go out in one gather write, so a small frame is one system call. A partial write
// resumes where it stopped; frames are never reordered or split between two owners.

#include "net/frame_channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace muster {
namespace {

constexpr const char* kPeer = "worker socket";

// sendmsg rather than writev: MSG_NOSIGNAL turns the SIGPIPE of a dead peer into EPIPE.
ssize_t send_parts(int fd, std::span<iovec> parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  return ::sendmsg(fd, &message, MSG_NOSIGNAL);
}

}  // namespace

FrameChannel::FrameChannel(UniqueFd socket) : socket_(std::move(socket)) {
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
}

Status FrameChannel::send(std::uint8_t type, std::uint64_t id, std::vector<std::byte> payload) {
  const FrameHeader header{
      .type = type, .id = id, .payload_size = static_cast<std::uint32_t>(payload.size())};
  MUSTER_CHECK(payload.size() <= kFramePayloadMax);
  outgoing_.push_back({encode_frame_header(header), std::move(payload)});
  return flush();
}

Status FrameChannel::flush() {
  while (!outgoing_.empty()) {
    auto& frame = outgoing_.front();
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    std::size_t skip = sent_;
    for (const auto bytes :
         {std::span<std::byte>(frame.header), std::span<std::byte>(frame.payload)}) {
      if (skip < bytes.size()) {
        parts[count++] = {bytes.data() + skip, bytes.size() - skip};
        skip = 0;
      } else {
        skip -= bytes.size();
      }
    }
    const ssize_t size = send_parts(socket_.get(), std::span(parts).first(count));
    if (size < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Done{};
      return system_error(kPeer, "write", errno);
    }
    sent_ += static_cast<std::size_t>(size);
    if (sent_ == kFrameHeaderSize + frame.payload.size()) {
      outgoing_.pop_front();
      sent_ = 0;
    }
  }
  return Done{};
}

Result<bool> FrameChannel::read_available(const FrameAssembler::OnFrame& on_frame) {
  for (;;) {
    const auto space = incoming_.space();
    const ssize_t size = ::read(socket_.get(), space.data(), space.size());
    if (size == 0) return false;
    if (size < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      return system_error(kPeer, "read", errno);
    }
    MUSTER_TRY(incoming_.advance(static_cast<std::size_t>(size), on_frame));
    if (!socket_.is_open()) return false;  // a frame has had it closed
    // A short read has emptied the socket; asking again would only cost a system call.
    if (static_cast<std::size_t>(size) < space.size()) return true;
  }
}

Status write_frame(int fd, std::uint8_t type, std::uint64_t id,
                   std::span<const std::span<const std::byte>> parts) {
  std::size_t payload_size = 0;
  for (const auto part : parts) payload_size += part.size();
  MUSTER_CHECK(payload_size <= kFramePayloadMax);
  auto header = encode_frame_header(
      {.type = type, .id = id, .payload_size = static_cast<std::uint32_t>(payload_size)});

  std::vector<iovec> rest{{header.data(), header.size()}};
  for (const auto part : parts) {
    if (!part.empty()) rest.push_back({const_cast<std::byte*>(part.data()), part.size()});
  }
  std::span<iovec> left(rest);
  while (!left.empty()) {
    const ssize_t count = send_parts(fd, left);
    if (count < 0) {
      if (errno == EINTR) continue;
      return system_error(kPeer, "write", errno);
    }
    auto sent = static_cast<std::size_t>(count);
    while (!left.empty() && sent >= left.front().iov_len) {
      sent -= left.front().iov_len;
      left = left.subspan(1);
    }
    if (!left.empty()) {
      left.front().iov_base = static_cast<std::byte*>(left.front().iov_base) + sent;
      left.front().iov_len -= sent;
    }
  }
  return Done{};
}

Status read_frames(int fd, const FrameAssembler::OnFrame& on_frame,
                   const std::function<void()>& before_read) {
  FrameAssembler incoming;
  for (;;) {
    if (before_read) before_read();
    const auto space = incoming.space();
    const ssize_t size = ::read(fd, space.data(), space.size());
    if (size == 0) return Done{};
    if (size < 0) {
      if (errno == EINTR) continue;
      return system_error(kPeer, "read", errno);
    }
    MUSTER_TRY(incoming.advance(static_cast<std::size_t>(size), on_frame));
  }
}

}  // namespace muster
