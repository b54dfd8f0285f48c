#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster {

/// Appends fields, little-endian and unaligned, as `ByteReader` takes them back.
class ByteWriter {
 public:
  ByteWriter() = default;
  /// Uses the memory of `buffer` again, not what is in it.
  explicit ByteWriter(std::vector<std::byte> buffer) : bytes_(std::move(buffer)) { bytes_.clear(); }

  template <typename Number>
  void number(Number value) {
    static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
    append(&value, sizeof value);
  }
  void text(std::string_view value);  // u32 size, then the bytes

  /// So many bytes are likely to come.
  void expect(std::size_t size) { bytes_.reserve(size); }

  /// u32 count, then the elements.
  template <typename Number>
  void numbers(std::span<const Number> values) {
    number(static_cast<std::uint32_t>(values.size()));
    append(values.data(), values.size_bytes());
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t size);

  std::vector<std::byte> bytes_;
};

/// Takes fields from a payload; every read is checked against its end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  /// Errors of all: Corrupt when the payload ends too early.
  template <typename Number>
  Result<Number> number() {
    const auto bytes = MUSTER_TRY(take(sizeof(Number)));
    Number value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  Result<std::string> text();

  template <typename Number>
  Result<std::vector<Number>> numbers() {
    const auto count = MUSTER_TRY(number<std::uint32_t>());
    const auto bytes = MUSTER_TRY(take(std::size_t{count} * sizeof(Number)));
    std::vector<Number> values(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  /// An enumerator, sent as its number; `last` is the greatest there is.
  ///
  /// Errors: Corrupt for a greater one, naming `what`.
  template <typename Enum>
  Result<Enum> enumerator(Enum last, const char* what) {
    const auto value = MUSTER_TRY(number<std::underlying_type_t<Enum>>());
    if (value > static_cast<std::underlying_type_t<Enum>>(last)) {
      return unknown_value(what, value);
    }
    return static_cast<Enum>(value);
  }

  /// "message has an unknown pooling: 9".
  static Error unknown_value(const char* what, std::uint64_t value);

  /// Everything that is left.
  std::span<const std::byte> rest() const { return rest_; }

  /// Errors: Corrupt when something is left.
  Status end() const;

 private:
  Result<std::span<const std::byte>> take(std::size_t size);

  std::span<const std::byte> rest_;
};

}  // namespace muster
