// Frames on a stream: encoding, and putting them together from whatever pieces arrive. Whole
// frames are handed on in place, without a copy, and only the rest is moved to the front. A
// header that lies about its size gets no memory for it: the buffer grows with what has really
// come.

#include "net/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace muster {
namespace {

constexpr std::uint16_t kMagic = 0x756D;
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kReadAhead = 64 * 1024;

static_assert(std::endian::native == std::endian::little, "frames are little-endian in memory too");

template <typename Number>
Number load(std::span<const std::byte> bytes, std::size_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

}  // namespace

std::array<std::byte, kFrameHeaderSize> encode_frame_header(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderSize> bytes{};
  std::memcpy(bytes.data(), &kMagic, 2);
  std::memcpy(bytes.data() + 2, &kVersion, 1);
  std::memcpy(bytes.data() + 3, &header.type, 1);
  std::memcpy(bytes.data() + 4, &header.id, 8);
  std::memcpy(bytes.data() + 12, &header.payload_size, 4);
  return bytes;
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte, kFrameHeaderSize> bytes) {
  if (load<std::uint16_t>(bytes, 0) != kMagic) {
    return Error{ErrorKind::Corrupt, fmt::format("not a muster frame: magic is 0x{:04X}",
                                                 load<std::uint16_t>(bytes, 0))};
  }
  if (load<std::uint8_t>(bytes, 2) != kVersion) {
    return Error{ErrorKind::Corrupt,
                 fmt::format("unknown frame version: {}", load<std::uint8_t>(bytes, 2))};
  }
  const FrameHeader header{.type = load<std::uint8_t>(bytes, 3),
                           .id = load<std::uint64_t>(bytes, 4),
                           .payload_size = load<std::uint32_t>(bytes, 12)};
  if (header.payload_size > kFramePayloadMax) {
    return Error{ErrorKind::Corrupt, fmt::format("frame payload is over the limit of {} bytes: {}",
                                                 kFramePayloadMax, header.payload_size)};
  }
  return header;
}

std::span<std::byte> FrameAssembler::space() {
  if (buffer_.size() < filled_ + kReadAhead) {
    buffer_.resize(filled_ + kReadAhead);
  }
  const auto missing = needed_ > filled_ ? needed_ - filled_ : 0;
  const auto size = std::min(std::max(missing, kReadAhead), buffer_.size() - filled_);
  return std::span(buffer_).subspan(filled_, size);
}

Status FrameAssembler::advance(std::size_t size, const OnFrame& on_frame) {
  filled_ += size;
  MUSTER_CHECK(filled_ <= buffer_.size());
  std::size_t at = 0;
  needed_ = 0;
  while (filled_ - at >= kFrameHeaderSize) {
    const std::span<const std::byte> rest = std::span(buffer_).subspan(at, filled_ - at);
    const auto header = MUSTER_TRY(decode_frame_header(rest.first<kFrameHeaderSize>()));
    needed_ = kFrameHeaderSize + header.payload_size;
    if (rest.size() < needed_) break;
    MUSTER_TRY(on_frame(header, rest.subspan(kFrameHeaderSize, header.payload_size)));
    at += needed_;
    needed_ = 0;
  }
  if (at > 0) {
    std::memmove(buffer_.data(), buffer_.data() + at, filled_ - at);
    filled_ -= at;
  }
  // Room for a large frame at once, so that it is read by few calls. The sender may lie about the
  // size: grow at most to double of what has really come.
  const std::size_t wanted = std::min(needed_, 2 * filled_ + 16 * kReadAhead);
  if (wanted > buffer_.size()) {
    buffer_.resize(wanted);
  }
  return Done{};
}

}  // namespace muster
