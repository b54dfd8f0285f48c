#pragma once

#include <cstddef>
#include <utility>

namespace muster::engine {

/// Memory on a cache line, its bytes not set, in pages of 2 MiB where it is large and the kernel
/// has some. `memory_use` counts it.
///
/// Errors: std::bad_alloc.
void* allocate_counted(std::size_t bytes);
void free_counted(void* memory, std::size_t bytes);

/// An array of plain values that are not set, in such memory.
template <typename T>
class CountedArray {
 public:
  CountedArray() = default;
  explicit CountedArray(std::size_t count)
      : data_(static_cast<T*>(allocate_counted(count * sizeof(T)))), count_(count) {}
  CountedArray(CountedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  CountedArray& operator=(CountedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~CountedArray() {
    if (data_ != nullptr) free_counted(data_, count_ * sizeof(T));
  }

  T* get() { return data_; }
  const T* get() const { return data_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace muster::engine
