#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cache/vector_cache.h"

namespace muster {

/// Keys, each its own, spread as those of texts are.
inline CacheKey key_of(std::uint64_t number) {
  return cache_key({}, {reinterpret_cast<const char*>(&number), sizeof number}, false);
}

/// Floats that are another for each seed and place.
inline std::vector<float> vector_of(std::uint64_t seed, std::size_t dim) {
  std::vector<float> vector(dim);
  for (std::size_t i = 0; i < dim; ++i) {
    vector[i] = static_cast<float>(seed % 1'000'003) + static_cast<float>(i) / 65'536.0F;
  }
  return vector;
}

/// Bitwise.
inline bool is_same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace muster
