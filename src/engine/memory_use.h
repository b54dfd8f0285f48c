#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace muster::engine {

/// What the engine holds on the CPU: every tensor of torch and oneDNN's packed weights and scratch,
/// in the bytes that were asked for, and our own counted buffers. Mapped weight files are not in
/// it, nor is what a `LoadAccount` counts.
struct MemoryUse {
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;  // since the last `restart_memory_peak`, or of the account
};

/// While one stands, what its thread takes and gives back is booked here and not in `memory_use`: a
/// model is loaded and freed beside lanes at work without showing in what they need.
///
/// Owner: the stack of the thread; one at a time.
class LoadAccount {
 public:
  LoadAccount();
  ~LoadAccount();
  LoadAccount(const LoadAccount&) = delete;
  LoadAccount& operator=(const LoadAccount&) = delete;

  /// What was taken and not given back, and the most of it; 0 where more was given back.
  MemoryUse use() const;

 private:
  friend void count_allocated(std::size_t size);
  friend void count_freed(std::size_t size);

  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
};

/// Makes torch allocate through a counting allocator from now on; once is enough.
///
/// Threads: any. Cost: two relaxed atomic operations an allocation.
void count_memory();

/// Nothing before `count_memory`. Threads: any.
MemoryUse memory_use();

/// From here on the peak is that of what follows. Threads: any, but what other threads allocate
/// meanwhile may be missed.
void restart_memory_peak();

/// Adds to the count, or takes away from it.
void count_allocated(std::size_t size);
void count_freed(std::size_t size);

/// For the containers of ours that grow with a model or a batch.
template <typename T>
struct CountedAllocator {
  using value_type = T;

  CountedAllocator() = default;
  template <typename U>
  CountedAllocator(const CountedAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    auto* memory = std::allocator<T>().allocate(count);
    count_allocated(count * sizeof(T));
    return memory;
  }
  void deallocate(T* memory, std::size_t count) {
    count_freed(count * sizeof(T));
    std::allocator<T>().deallocate(memory, count);
  }

  bool operator==(const CountedAllocator&) const = default;
};

}  // namespace muster::engine
