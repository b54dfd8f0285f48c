#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "cache/vector_cache.h"

namespace muster {

/// A block by its place in the pool.
using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = 0xFFFFFFFF;

inline constexpr std::size_t kBlockSize = 256;

/// The first bytes of every block. `part` is 0 in one that holds nothing, 1 in the first block of
/// an entry, 2 in its second, and so on; `next` leads on, kNoBlock in the last one.
struct BlockHead {
  BlockIndex next;
  std::uint32_t part;
};

/// The first bytes of an entry's first block; floats fill the rest of it, and of each further block
/// what its BlockHead leaves. docs/formats/vector-cache.md has the table.
///
/// `newer`, `older` and `chained` belong to the running process: where the entry stands among the
/// least recently used and in its bucket. They share a cache line with the key, so that a lookup
/// costs one miss.
struct EntryHead {
  BlockHead link;
  std::uint32_t dim;
  BlockIndex newer;
  BlockIndex older;
  BlockIndex chained;
  std::uint64_t checksum;  // entry_checksum
  CacheKey key;
  double unix_seconds;     // when it was put
  std::uint64_t sequence;  // later puts have higher ones
};
static_assert(sizeof(EntryHead) == 80);

inline constexpr std::size_t kFloatsInFirst = (kBlockSize - sizeof(EntryHead)) / sizeof(float);
inline constexpr std::size_t kFloatsInOther = (kBlockSize - sizeof(BlockHead)) / sizeof(float);

/// Blocks that a vector of `dim` floats takes.
constexpr std::size_t block_count_of(std::size_t dim) {
  return dim <= kFloatsInFirst ? 1
                               : 1 + (dim - kFloatsInFirst + kFloatsInOther - 1) / kFloatsInOther;
}

/// XXH3 (64 bits) over key, time, sequence, dim and the XXH3 of the vector's bytes.
std::uint64_t entry_checksum(const EntryHead& head, std::span<const float> vector);

/// A fixed number of blocks of one size. Memory is taken as blocks are first used and never beyond
/// the number: what a cache holds is bounded to the byte, whatever sizes come and go.
///
/// Threads: owned by one loop.
class BlockPool {
 public:
  /// Errors: ResourceExhausted when the address space has no room.
  static Result<BlockPool> make(std::size_t block_count);

  BlockPool(BlockPool&& other) noexcept;
  BlockPool& operator=(BlockPool&& other) noexcept;
  ~BlockPool();

  std::size_t block_count() const { return block_count_; }
  /// Blocks below this one have been used; a file of the cache is as long.
  std::size_t used_end() const { return used_end_; }
  std::size_t free_count() const { return free_count_ + (block_count_ - used_end_); }

  BlockHead& block(BlockIndex index) { return *reinterpret_cast<BlockHead*>(at(index)); }
  EntryHead& entry(BlockIndex index) { return *reinterpret_cast<EntryHead*>(at(index)); }
  const EntryHead& entry(BlockIndex index) const {
    return *reinterpret_cast<const EntryHead*>(at(index));
  }

  /// The bytes of `count` blocks from `first` on.
  std::span<std::byte> bytes(BlockIndex first, std::size_t count) {
    return {at(first), count * kBlockSize};
  }

  /// Blocks of an entry of `dim` floats, linked and numbered; free_count() must suffice. Freed
  /// entries are used up one after another from their first block on: so no file ever holds a first
  /// block whose others were overwritten, but for a write that was cut short.
  BlockIndex take(std::size_t dim);

  /// Gives back all blocks of an entry; like write and read it takes its first one.
  void give_back(BlockIndex first);

  /// Blocks below `end` were filled from a file; they are in use or given back one by one.
  void set_used_end(std::size_t end) { used_end_ = end; }
  /// Gives back one block that belongs to no entry.
  void give_back_single(BlockIndex index);

  void write(BlockIndex first, std::span<const float> vector);
  /// Copies the vector of an entry; `vector` has its dim.
  void read(BlockIndex first, std::span<float> vector) const;

  /// Nothing is in use any more, and the memory is the system's again.
  void clear();

 private:
  BlockPool(std::byte* data, std::size_t block_count) : data_(data), block_count_(block_count) {}

  std::byte* at(BlockIndex index) const { return data_ + std::size_t{index} * kBlockSize; }
  BlockIndex take_one();
  void push_free(BlockIndex first, std::size_t count);

  std::byte* data_ = nullptr;
  std::size_t block_count_ = 0;
  std::size_t used_end_ = 0;
  std::size_t free_count_ = 0;        // below used_end_
  BlockIndex first_free_ = kNoBlock;  // chains of blocks, joined by `older` of their first
};

}  // namespace muster
