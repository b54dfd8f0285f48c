#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/result.h"
#include "modelfile/gguf.h"

namespace muster {

/// Bytes of one value; 0 for strings and lists.
constexpr std::uint64_t gguf_value_size(GgufValueType type) {
  constexpr std::uint8_t kSizes[kGgufValueTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kSizes[static_cast<std::size_t>(type)];
}

/// Reads the little-endian values of a GGUF header in order and never past its end.
///
/// Errors: Corrupt where there are too few bytes.
/// Threads: not thread-safe; the bytes must outlive it.
class GgufCursor {
 public:
  explicit GgufCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t position() const { return position_; }

  template <typename T>
  Result<T> number() {
    MUSTER_TRY(need(sizeof(T)));
    // The bytes of the file are little-endian, and so are the machines that we build for.
    static_assert(std::endian::native == std::endian::little);
    T value{};
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  Status skip(std::uint64_t count, std::uint64_t size) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return past_the_end();
    MUSTER_TRY(need(bytes));
    position_ += bytes;
    return Done{};
  }

  Result<std::string_view> text() {
    const auto length = MUSTER_TRY(number<std::uint64_t>());
    MUSTER_TRY(need(length));
    const auto* data = reinterpret_cast<const char*>(bytes_.data()) + position_;
    position_ += length;
    return std::string_view(data, length);
  }

 private:
  Status need(std::uint64_t bytes) const {
    if (bytes <= bytes_.size() - position_) return Done{};
    return past_the_end();
  }

  Error past_the_end() const {
    return Error{ErrorKind::Corrupt,
                 fmt::format("the header passes the end of the file at byte {} of {}", position_,
                             bytes_.size())};
  }

  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

}  // namespace muster
