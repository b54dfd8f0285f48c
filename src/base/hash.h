#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// XXH3 with 128 bits, for equality of content among friends (checksums, cache keys), not security.
/// Source: xxHash specification 0.8, "XXH3 (128-bit)".
///
/// Threads: not thread-safe; one per stream of bytes.
class Hash128 {
 public:
  Hash128();
  Hash128(Hash128&&) noexcept;
  Hash128& operator=(Hash128&&) noexcept;
  ~Hash128();

  void update(std::string_view bytes);
  void update(std::span<const std::byte> bytes);

  /// 32 lower-case hexadecimal digits of everything so far; more may be added afterwards.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `Hash128` of one piece of text.
std::string hash_hex(std::string_view bytes);

/// The 128 bits as a number.
struct HashValue {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const HashValue&) const = default;
};
HashValue hash128(std::span<const std::byte> bytes);

/// XXH3 with 64 bits.
std::uint64_t hash64(std::string_view bytes);

}  // namespace muster
