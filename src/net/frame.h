#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

namespace muster {

/// One message on a stream: what it is, what it belongs to, and its bytes.
///
/// On the wire: 16 bytes, little-endian, then the payload:
///   u16 magic 0x756D ("mu") | u8 version 1 | u8 type | u64 id | u32 payload size
/// Source: docs/formats/frames.md.
struct FrameHeader {
  std::uint8_t type = 0;
  std::uint64_t id = 0;            // the batch it is about; 0 where the type needs none
  std::uint32_t payload_size = 0;  // bytes
};

inline constexpr std::size_t kFrameHeaderSize = 16;
inline constexpr std::uint32_t kFramePayloadMax =
    1U << 30;  // a batch's rows: 65,536 texts x 4,096 x 4 B

std::array<std::byte, kFrameHeaderSize> encode_frame_header(const FrameHeader& header);

/// Errors: Corrupt for another magic, version or a payload over `kFramePayloadMax`.
Result<FrameHeader> decode_frame_header(std::span<const std::byte, kFrameHeaderSize> bytes);

/// Puts frames together from pieces of a stream.
///
/// Threads: not thread-safe; owned by the loop that reads the stream.
class FrameAssembler {
 public:
  using OnFrame = std::function<Status(const FrameHeader&, std::span<const std::byte> payload)>;

  /// Where the next bytes of the stream go: at least one byte, at most what the current frame still
  /// needs, or a read-ahead of 64 KiB where that is more. So of what follows a large frame little
  /// is read with it, and has to be moved to the front.
  std::span<std::byte> space();

  /// Tells that `size` bytes were put into `space()`; calls `on_frame` for each whole frame.
  ///
  /// Errors: Corrupt from the header; those of `on_frame`. The stream is then of no more use.
  Status advance(std::size_t size, const OnFrame& on_frame);

 private:
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;  // bytes of buffer_ that hold data
  std::size_t needed_ = 0;  // bytes of the frame that is not whole yet, header included; 0: unknown
};

}  // namespace muster
