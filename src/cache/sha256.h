#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

// OpenSSL's type, so that its headers stay inside.
struct SHA256state_st;

namespace muster {

using Sha256Digest = std::array<std::byte, 32>;

/// SHA-256 of a stream of bytes.
///
/// Threads: not thread-safe; one per stream of bytes.
/// Source: FIPS 180-4, section 6.2; computed by OpenSSL.
class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes);

  /// The digest of what came since the last one; starts anew.
  Sha256Digest finish();

 private:
  const std::unique_ptr<SHA256state_st> state_;
};

/// Of one piece of text.
Sha256Digest sha256(std::string_view bytes);

}  // namespace muster
