#include "net/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace muster {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::vector<std::byte> frame(std::uint8_t type, std::uint64_t id, std::string_view payload) {
  const auto header = encode_frame_header({type, id, static_cast<std::uint32_t>(payload.size())});
  std::vector<std::byte> bytes(header.begin(), header.end());
  const auto body = bytes_of(payload);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

TEST(FrameHeader, LiesOnTheWireAsDocumented) {
  const auto bytes =
      encode_frame_header({.type = 4, .id = 0x0102030405060708, .payload_size = 0x0A0B});
  const auto expected =
      bytes_of(std::string_view("mu\x01\x04\x08\x07\x06\x05\x04\x03\x02\x01\x0B\x0A\0\0", 16));
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()));
}

TEST(FrameHeader, RefusesAnotherMagicVersionOrAHugePayload) {
  auto bytes = encode_frame_header({.type = 1, .id = 1, .payload_size = 1});
  bytes[0] = std::byte{'x'};
  EXPECT_EQ(decode_frame_header(bytes).error().kind, ErrorKind::Corrupt);
  bytes = encode_frame_header({.type = 1, .id = 1, .payload_size = 1});
  bytes[2] = std::byte{9};
  EXPECT_EQ(decode_frame_header(bytes).error().message, "unknown frame version: 9");
  bytes = encode_frame_header({.type = 1, .id = 1, .payload_size = kFramePayloadMax + 1});
  EXPECT_EQ(decode_frame_header(bytes).error().kind, ErrorKind::Corrupt);
}

TEST(FrameAssembler, FindsFramesWhateverThePieces) {
  auto stream = frame(1, 10, "hello");
  for (const auto& next : {frame(2, 11, ""), frame(3, 12, std::string(200'000, 'x'))}) {
    stream.insert(stream.end(), next.begin(), next.end());
  }
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{4096}, stream.size()}) {
    SCOPED_TRACE(piece);
    FrameAssembler assembler;
    std::string seen;
    std::size_t at = 0;
    while (at < stream.size()) {
      const auto space = assembler.space();
      const auto count = std::min({piece, space.size(), stream.size() - at});
      std::memcpy(space.data(), stream.data() + at, count);
      at += count;
      ASSERT_TRUE(assembler.advance(
          count, [&](const FrameHeader& header, std::span<const std::byte> payload) -> Status {
            seen += std::to_string(header.type) + ":" + std::to_string(header.id) + ":" +
                    std::to_string(payload.size()) + " ";
            return Done{};
          }));
    }
    EXPECT_EQ(seen, "1:10:5 2:11:0 3:12:200000 ");
  }
}

// Its header and 100,000 bytes have come, and later all but the last 1,000.
TEST(FrameAssembler, AsksForNoMoreThanTheFrameNeedsOrAReadAhead) {
  constexpr std::size_t kReadAhead = 64 * 1024;
  const auto stream = frame(3, 12, std::string(200'000, 'x'));
  FrameAssembler assembler;
  std::size_t count = 0;
  const auto on_frame = [&](const FrameHeader&, std::span<const std::byte> payload) -> Status {
    EXPECT_EQ(payload.size(), 200'000U);
    ++count;
    return Done{};
  };
  std::size_t at = 0;
  const auto feed_up_to = [&](std::size_t end) {
    while (at < end) {
      const auto space = assembler.space();
      const auto size = std::min(space.size(), end - at);
      std::memcpy(space.data(), stream.data() + at, size);
      at += size;
      ASSERT_TRUE(assembler.advance(size, on_frame));
    }
  };
  EXPECT_EQ(assembler.space().size(), kReadAhead);
  ASSERT_NO_FATAL_FAILURE(feed_up_to(100'016));
  EXPECT_EQ(assembler.space().size(), 100'000U);
  ASSERT_NO_FATAL_FAILURE(feed_up_to(199'016));
  EXPECT_EQ(assembler.space().size(), kReadAhead);
  ASSERT_NO_FATAL_FAILURE(feed_up_to(200'016));
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(assembler.space().size(), kReadAhead) << "the next one is not known";
}

}  // namespace
}  // namespace muster
