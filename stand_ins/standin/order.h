#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::standin {

/// A stream's number among all streams of the process.
using StreamNumber = std::size_t;

/// The `count`-th piece of work of a stream, from 1 on.
struct Moment {
  StreamNumber stream = 0;
  std::uint64_t count = 0;
};

/// What is known to be over before something begins: of each stream, up to which piece of work. A
/// vector clock.
///
/// Source: Mattern 1989, "Virtual Time and Global States of Distributed Systems"; torch's own
/// checker for CUDA works the same way: torch/cuda/_sanitizer.py.
class Past {
 public:
  bool has(const Moment& moment) const;
  void add(const Moment& moment);
  void add(const Past& other);

 private:
  std::vector<std::uint64_t> counts_;  // by stream; those missing are 0
};

/// One use of a piece of memory by an operation on a stream.
struct MemoryUse {
  Moment at;
  std::string operation = {};
  bool is_write = false;
};

/// Who has used a piece of memory since its last write. Two uses, one of them a write, must be in
/// an order that waiting has made: luck with the times of this run is none.
///
/// Threads: not thread-safe; its owner's.
class UseHistory {
 public:
  /// The earlier use that `next` may overtake: one that is neither in `past` nor on the same
  /// stream. nullopt: there is none.
  std::optional<MemoryUse> conflict(const MemoryUse& next, const Past& past) const;

  void add(const MemoryUse& use);

  /// Whether every use is in `past`.
  bool is_over(const Past& past) const;

  void clear();

 private:
  std::optional<MemoryUse> write_;
  std::vector<MemoryUse> reads_;  // since `write_`, the last of each stream
};

}  // namespace muster::standin
