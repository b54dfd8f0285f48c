// Counts torch's memory by putting an allocator of our own before its own, with the size in front
// of each block: a free does not say its size. An account on the loading thread takes what is
// allocated there, so that loading one model and computing with another are told apart. The
// counters are relaxed atomics, since nothing is ordered by them. Cost: 64 bytes a block and an
// addition.

#include "engine/memory_use.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace muster::engine {
namespace {

std::atomic<std::uint64_t> live{0};
std::atomic<std::uint64_t> peak{0};
thread_local LoadAccount* account = nullptr;

// Before every block of torch lies its size. A cache line, so that blocks keep torch's alignment.
// Source: torch 2.11, c10/core/alignment.h, gAlignment.
constexpr std::size_t kHead = 64;

void free_block(void* block) {
  if (block == nullptr) return;
  auto* start = static_cast<std::byte*>(block) - kHead;
  std::size_t size = 0;
  std::memcpy(&size, start, sizeof size);
  count_freed(size);
  c10::free_cpu(start);
}

class CountingAllocator final : public at::Allocator {
 public:
  // An empty block stays without memory, as torch's own allocator has it.
  at::DataPtr allocate(std::size_t size) override {
    void* block = size == 0 ? nullptr : allocate_block(size);
    return {block, block, &free_block, at::Device(at::DeviceType::CPU)};
  }

  at::DeleterFnPtr raw_deleter() const override { return &free_block; }

  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }

 private:
  static void* allocate_block(std::size_t size) {
    auto* start = static_cast<std::byte*>(c10::alloc_cpu(size + kHead));
    std::memcpy(start, &size, sizeof size);
    count_allocated(size);
    return start + kHead;
  }
};

}  // namespace

void count_memory() {
  // Never destroyed: blocks may outlive every other static.
  static auto* const allocator = [] {
    auto* made = new CountingAllocator();  // NOLINT: see above
    c10::SetCPUAllocator(made, /*priority=*/200);
    return made;
  }();
  static_cast<void>(allocator);
}

LoadAccount::LoadAccount() { account = this; }

LoadAccount::~LoadAccount() { account = nullptr; }

MemoryUse LoadAccount::use() const {
  return {static_cast<std::uint64_t>(std::max<std::int64_t>(live_, 0)),
          static_cast<std::uint64_t>(peak_)};
}

MemoryUse memory_use() {
  return {live.load(std::memory_order_relaxed), peak.load(std::memory_order_relaxed)};
}

void restart_memory_peak() {
  peak.store(live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// The loop ends when another thread has raised the peak above ours or we have raised it ourselves.
void count_allocated(std::size_t size) {
  if (account != nullptr) {
    account->live_ += static_cast<std::int64_t>(size);
    account->peak_ = std::max(account->peak_, account->live_);
    return;
  }
  const auto now = live.fetch_add(size, std::memory_order_relaxed) + size;
  auto highest = peak.load(std::memory_order_relaxed);
  while (now > highest && !peak.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
  }
}

void count_freed(std::size_t size) {
  if (account != nullptr) {
    account->live_ -= static_cast<std::int64_t>(size);
  } else {
    live.fetch_sub(size, std::memory_order_relaxed);
  }
}

}  // namespace muster::engine
