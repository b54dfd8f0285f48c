// Every field is preceded by its length before it is hashed. Without that, "ab" + "c" and "a" +
// "bc" would be one scope.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cache/sha256.h"
#include "cache/vector_cache.h"

namespace muster {
namespace {

// A context for each thread that asks: keys are made for every text, and a context costs more than
// a short one.
Sha256& thread_hash() {
  thread_local Sha256 hash;
  return hash;
}

std::array<std::byte, 8> little_endian(std::uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (auto& byte : bytes) {
    byte = static_cast<std::byte>(value & 0xFF);
    value >>= 8;
  }
  return bytes;
}

}  // namespace

CacheKey cache_scope(std::span<const std::string_view> fields) {
  Sha256& hash = thread_hash();
  for (const auto field : fields) {
    hash.update(little_endian(field.size()));
    hash.update(field);
  }
  return hash.finish();
}

CacheKey cache_key(const CacheKey& scope, std::string_view text, bool is_ids) {
  // The scope has one length, and so has the byte after it: what follows is the text alone.
  std::array<std::byte, sizeof(CacheKey) + 1> head;
  std::copy(scope.begin(), scope.end(), head.begin());
  head.back() = static_cast<std::byte>(is_ids ? 1 : 0);
  Sha256& hash = thread_hash();
  hash.update(head);
  hash.update(text);
  return hash.finish();
}

}  // namespace muster
