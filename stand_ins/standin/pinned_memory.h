#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "standin/order.h"
#include "standin/page_heap.h"
#include "standin/page_store.h"

namespace muster::standin {

/// Memory of the host that devices copy to and from by themselves. From the launch of such a copy
/// until the host has waited for it, the host may only read what is copied from and may not touch
/// what is copied to: a forgotten wait is a SIGSEGV.
///
/// Threads: not thread-safe; its owner's.
class PinnedMemory {
 public:
  struct Block {
    std::size_t begin = 0;
    std::size_t size = 0;  // whole pages, a power of two of them
    UseHistory history;
    bool is_free = false;
  };

  explicit PinnedMemory(std::unique_ptr<PageStore> store);

  /// A block with undefined contents, for the host to use; one that was freed before where its
  /// copies are `done`. nullptr: the addresses do not suffice.
  void* allocate(std::uint64_t size, const Past& done);
  void free(const void* address);

  /// nullptr: it is no address of such memory.
  Block* find(const void* address);

  /// A device uses it from now on.
  void add_use(Block& block, const MemoryUse& use);

  /// The host has waited for all of this: it has back what is in use by nothing else.
  void on_wait(const Past& past);

  const PageStore& store() const { return *store_; }

 private:
  void give_to_host(Block& block);

  std::unique_ptr<PageStore> store_;
  PageHeap heap_;
  std::map<std::size_t, Block> blocks_;           // by where they begin
  std::multimap<std::size_t, std::size_t> free_;  // by whole pages
  std::set<std::size_t> in_use_;                  // by a device, as far as the host knows
};

}  // namespace muster::standin
