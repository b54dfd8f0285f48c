#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "cache/sha256.h"
#include "cache/vector_cache.h"

namespace muster {
namespace {

std::string hex(const Sha256Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const auto byte : digest) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

// Source: NIST, "SHA-256 Example Values" (FIPS 180-4), and the digest of the empty text.
TEST(Sha256, KnowsThePublishedExamples) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, StartsAnewAfterEachDigest) {
  Sha256 hash;
  hash.update("something else");
  hash.finish();
  hash.update("a");
  hash.update("bc");
  EXPECT_EQ(hash.finish(), sha256("abc"));
}

CacheKey scope_of(const std::vector<std::string_view>& fields) { return cache_scope(fields); }

TEST(CacheKey, IsTheHashOfScopeKindAndText) {
  const CacheKey scope = scope_of({"a"});
  // One field: its length in eight bytes, the lowest first, then its bytes.
  EXPECT_EQ(scope, sha256(std::string_view("\x01\0\0\0\0\0\0\0a", 9)));
  std::string bytes(reinterpret_cast<const char*>(scope.data()), scope.size());
  EXPECT_EQ(cache_key(scope, "text", false), sha256(bytes + std::string(1, '\0') + "text"));
  EXPECT_EQ(cache_key(scope, "text", true), sha256(bytes + std::string(1, '\1') + "text"));
}

TEST(CacheKey, TellsFieldsApartByTheirLengths) {
  EXPECT_NE(scope_of({"ab", "c"}), scope_of({"a", "bc"}));
  EXPECT_NE(scope_of({"ab"}), scope_of({"ab", ""}));
  EXPECT_NE(scope_of({}), scope_of({""}));
}

TEST(CacheKey, IsAnotherForEachScopeTextAndKind) {
  const auto a = scope_of({"a"});
  EXPECT_NE(cache_key(a, "x", false), cache_key(scope_of({"b"}), "x", false));
  EXPECT_NE(cache_key(a, "x", false), cache_key(a, "x ", false));
  EXPECT_NE(cache_key(a, "x", false), cache_key(a, "x", true));
  EXPECT_EQ(cache_key(a, "x", false), cache_key(a, "x", false));
}

}  // namespace
}  // namespace muster
