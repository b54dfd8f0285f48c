#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "standin/order.h"
#include "standin/page_heap.h"
#include "standin/page_store.h"

namespace muster::standin {

/// Bytes of a device: given out, and taken from it for that; those given back for later included.
struct MemoryCounts {
  std::uint64_t live_bytes = 0;
  std::uint64_t live_peak = 0;
  std::uint64_t taken_bytes = 0;
  std::uint64_t taken_peak = 0;
  std::uint64_t allocations = 0;
  std::uint64_t full = 0;  // times that there was none
};

/// The blocks of one device's memory. A block that is given back is kept for the stream that had
/// it, whose work comes in order, as torch's allocator for CUDA does; `flush` takes it from there.
///
/// Threads: not thread-safe; its owner's.
class DeviceMemory {
 public:
  struct Block {
    std::size_t begin = 0;
    std::uint64_t size = 0;  // counted in units of kUnit
    StreamNumber owner = 0;  // it was given out on
    UseHistory history;
    std::vector<StreamNumber> users;  // others that the host has said use it
    Moment given_back;                // in the order of `owner`; count 0: it is in use
    bool is_free = false;
  };

  /// Source: torch 2.11, c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize.
  static constexpr std::uint64_t kUnit = 512;
  static std::uint64_t rounded(std::uint64_t size) { return (size + kUnit - 1) / kUnit * kUnit; }

  explicit DeviceMemory(std::unique_ptr<PageStore> store);

  /// A block that this stream had before, of as many pages and no smaller, which keeps its size;
  /// nullptr: there is none.
  void* reuse(std::uint64_t size, StreamNumber owner);

  /// A new block; nullptr where the addresses do not suffice.
  void* take(std::uint64_t size, StreamNumber owner);

  /// The block of an address in the host's view; nullptr: it is none.
  Block* find(const void* address);

  /// From now on for its owner's next `reuse`. `now`: the last work of its owner.
  void give_back(Block& block, const Moment& now);

  /// Gives those blocks to the device whose streams have come past them.
  void flush(const Past& done);

  const PageStore& store() const { return *store_; }
  const MemoryCounts& counts() const { return counts_; }
  void count_full() { ++counts_.full; }
  void restart_peaks();

 private:
  using Kept = std::multimap<std::pair<StreamNumber, std::uint64_t>, std::size_t>;

  void* give_out(Block& block, StreamNumber owner);

  std::unique_ptr<PageStore> store_;
  PageHeap heap_;
  std::map<std::size_t, Block> blocks_;  // by where they begin
  Kept kept_;                            // by stream and size: where they begin
  MemoryCounts counts_;
};

}  // namespace muster::standin
