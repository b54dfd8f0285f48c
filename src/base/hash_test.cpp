#include "base/hash.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace muster {
namespace {

// Journals and caches keep these: no instruction set may change them.
// Source of the values: the Python package xxhash 4.1.0 (xxHash 0.8.4).
TEST(Hash, IsXxh3OnEveryProcessor) {
  std::string bytes(65536, 0);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 131 + (i >> 8U) * 7);
  }
  constexpr const char* kExpected = "5b9ee82cbb7745bfc4717f32a25f9b2b";
  EXPECT_EQ(hash_hex(bytes), kExpected);
  EXPECT_EQ(hash64(bytes), 0xc4717f32a25f9b2bU);
  Hash128 hash;
  for (std::size_t at = 0; at < bytes.size(); at += 1000) {
    hash.update(std::string_view(bytes).substr(at, 1000));
  }
  EXPECT_EQ(hash.hex(), kExpected);
  EXPECT_EQ(hash_hex("abc"), "06b05ab6733a618578af5f94892f3950");
}

}  // namespace
}  // namespace muster
