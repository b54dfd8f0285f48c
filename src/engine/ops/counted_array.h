#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace muster::engine {

enum class ArrayPlace : std::uint8_t {
  Own,      // in pages of its own
  Weights,  // behind others in large pages that they share (page_arena.h)
};

/// Memory on a cache line, its bytes not set, in pages of 2 MiB where it is large and the kernel
/// has some. `memory_use` counts it.
///
/// Errors: std::bad_alloc.
void* allocate_counted(std::size_t bytes, ArrayPlace place);
void free_counted(void* memory, std::size_t bytes, ArrayPlace place);

/// An array of plain values that are not set, in such memory.
template <typename T>
class CountedArray {
 public:
  CountedArray() = default;
  explicit CountedArray(std::size_t count, ArrayPlace place = ArrayPlace::Own)
      : data_(static_cast<T*>(allocate_counted(count * sizeof(T), place))),
        count_(count),
        place_(place) {}
  CountedArray(CountedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        count_(std::exchange(other.count_, 0)),
        place_(other.place_) {}
  CountedArray& operator=(CountedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~CountedArray() {
    if (data_ != nullptr) free_counted(data_, count_ * sizeof(T), place_);
  }

  T* get() { return data_; }
  const T* get() const { return data_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
  ArrayPlace place_ = ArrayPlace::Own;
};

}  // namespace muster::engine
