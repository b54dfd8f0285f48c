#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "scheduler/prefix_key.h"

namespace muster {

/// A worker that could be given a stream.
struct PrefixCandidate {
  std::size_t group = 0;
  std::size_t load = 0;  // streams that it has
};

/// Which worker has been given which beginnings of prompts lately, so that a prompt goes where its
/// keys and values may still be. What is said here is a hint: it decides where a stream is
/// computed, never what comes out.
///
/// Pure. Threads: owned by one.
class PrefixPlaces {
 public:
  explicit PrefixPlaces(std::size_t group_count) : groups_(group_count) {}

  /// A worker got a prompt whose blocks have these keys. Of each worker the latest `keys_most` are
  /// known: as many as its cache has blocks.
  void on_given(std::size_t group, std::span<const PrefixKey> keys, std::size_t keys_most);

  /// It starts anew, with an empty cache.
  void forget(std::size_t group);

  /// How many of these blocks, from the first on, the worker was given before.
  std::size_t match(std::size_t group, std::span<const PrefixKey> keys) const;

  /// Of the least busy ones that which matches most, else the first. A busier one is never
  /// preferred: to wait costs more than to compute a beginning again. nullopt: there is none.
  std::optional<std::size_t> choose(std::span<const PrefixCandidate> candidates,
                                    std::span<const PrefixKey> keys) const;

 private:
  struct Group {
    std::unordered_map<PrefixKey, std::uint64_t, PrefixKeyHash> last_used;
    std::map<std::uint64_t, PrefixKey> by_use;  // the same; the longest unused first
  };

  std::vector<Group> groups_;
  std::uint64_t use_count_ = 0;
};

}  // namespace muster
