#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::standin {

/// Memory that is seen at two addresses. The host's view is what programs hold; what they may do
/// there is set page by page, and anything else is a SIGSEGV. The device's view, `device_offset()`
/// bytes further, is for kernels alone. So a kernel may write while the host may not even read,
/// in one process and without a moment in which both may.
///
/// Only addresses are reserved; pages come when they are written. A forked child has neither view.
///
/// Threads: thread-safe, but for one page by two threads at once.
class PageStore {
 public:
  enum class Access { None, Read, ReadWrite };

  /// Shapes: size in bytes, whole pages. At first nobody may access anything.
  ///
  /// Errors: Unsupported (pages of another size than kPageSize), ResourceExhausted and others of
  /// the system.
  static Result<std::unique_ptr<PageStore>> reserve(std::size_t size);
  ~PageStore();
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  std::byte* host_view() const { return host_; }
  std::ptrdiff_t device_offset() const { return device_ - host_; }
  std::size_t size() const { return size_; }

  /// Whether the address is one of the host's view.
  bool contains(const void* address) const;
  bool device_view_contains(const void* address) const;
  /// How far it lies behind the beginning of the host's view.
  std::size_t place_of(const void* address) const;

  /// Shapes: begin and size in bytes, whole pages.
  void set_host_access(std::size_t begin, std::size_t size, Access access);
  void set_device_access(std::size_t begin, std::size_t size, Access access);

  /// Gives the pages back to the system: zeros are read there then.
  void drop(std::size_t begin, std::size_t size);

 private:
  PageStore(UniqueFd file, std::byte* host, std::byte* device, std::size_t size);

  UniqueFd file_;
  std::byte* host_;
  std::byte* device_;
  std::size_t size_;
};

}  // namespace muster::standin
