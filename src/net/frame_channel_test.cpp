#include "net/frame_channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <thread>

namespace muster {
namespace {

struct Pair {
  UniqueFd here;
  UniqueFd there;
};

Pair socket_pair() {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

TEST(FrameChannel, SendsMoreThanTheSocketTakesAtOnce) {
  auto pair = socket_pair();
  FrameChannel channel(std::move(pair.here));
  const std::size_t size = 8 << 20;  // far above any socket buffer
  ASSERT_TRUE(channel.send(7, 42, std::vector<std::byte>(size, std::byte{5})));
  EXPECT_TRUE(channel.wants_write());

  std::size_t received = 0;
  std::jthread reader([&, fd = std::move(pair.there)] {
    const auto status = read_frames(
        fd.get(), [&](const FrameHeader& header, std::span<const std::byte> payload) -> Status {
          EXPECT_EQ(header.type, 7);
          EXPECT_EQ(header.id, 42U);
          received = payload.size();
          return Error{ErrorKind::Cancelled, "enough"};
        });
    EXPECT_EQ(status.error().kind, ErrorKind::Cancelled);
  });
  while (channel.wants_write()) {
    pollfd waiting{channel.fd(), POLLOUT, 0};
    ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
    ASSERT_TRUE(channel.flush());
  }
  reader.join();
  EXPECT_EQ(received, size);
}

TEST(FrameChannel, ReadsWhatABlockingWriterSendsAndSeesTheEnd) {
  auto pair = socket_pair();
  FrameChannel channel(std::move(pair.here));
  const std::array<std::byte, 3> head{std::byte{1}, std::byte{2}, std::byte{3}};
  const std::vector<std::byte> tail(100'000, std::byte{4});
  std::jthread writer([&, fd = std::move(pair.there)] {
    const std::array<std::span<const std::byte>, 3> parts{head, {}, tail};
    EXPECT_TRUE(write_frame(fd.get(), 5, 6, parts));
  });
  std::size_t received = 0;
  for (bool is_open = true; is_open;) {
    pollfd waiting{channel.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
    const auto more = channel.read_available(
        [&](const FrameHeader&, std::span<const std::byte> payload) -> Status {
          received = payload.size();
          EXPECT_EQ(payload[2], std::byte{3});
          EXPECT_EQ(payload[3], std::byte{4});
          return Done{};
        });
    ASSERT_TRUE(more);
    is_open = *more;
  }
  EXPECT_EQ(received, head.size() + tail.size());
}

// A worker that cannot load its model is told to end within its own answer.
TEST(FrameChannel, MayBeClosedByAFrame) {
  auto pair = socket_pair();
  FrameChannel channel(std::move(pair.here));
  // With its head as much as is read at once, so that there could be more.
  const std::vector<std::byte> payload((64 << 10) - kFrameHeaderSize);
  const std::array<std::span<const std::byte>, 1> parts{payload};
  ASSERT_TRUE(write_frame(pair.there.get(), 5, 6, parts));
  const auto more =
      channel.read_available([&](const FrameHeader&, std::span<const std::byte>) -> Status {
        channel.close();
        return Done{};
      });
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_FALSE(*more);
}

TEST(FrameChannel, ADeadPeerIsUnavailableNotASignal) {
  auto pair = socket_pair();
  FrameChannel channel(std::move(pair.here));
  pair.there.reset();
  EXPECT_EQ(channel.send(1, 1, std::vector<std::byte>(10)).error().kind, ErrorKind::Unavailable);
}

}  // namespace
}  // namespace muster
