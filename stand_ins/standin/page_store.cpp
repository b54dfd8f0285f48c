// One file without a name (memfd), mapped twice. Rights belong to a mapping, so each view has its
// own, and pages that are dropped are punched out of the file. Neither view is in a core file,
// which would read, and so take, every page of the addresses; nor in a child process, as CUDA's is
// not.

#include "standin/page_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "standin/page_heap.h"

namespace muster::standin {
namespace {

int protection(PageStore::Access access) {
  switch (access) {
    case PageStore::Access::None:
      return PROT_NONE;
    case PageStore::Access::Read:
      return PROT_READ;
    case PageStore::Access::ReadWrite:
      return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

std::byte* map_view(int file, std::size_t size) {
  void* view = ::mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (view == MAP_FAILED) return nullptr;
  MUSTER_CHECK(::madvise(view, size, MADV_DONTDUMP) == 0);
  MUSTER_CHECK(::madvise(view, size, MADV_DONTFORK) == 0);
  return static_cast<std::byte*>(view);
}

// The kernel splits a mapping where rights change, and has a limit for the pieces of a process
// (vm.max_map_count, 65,530): beyond it the stand-in cannot keep its promise.
void protect(std::byte* begin, std::size_t size, PageStore::Access access) {
  MUSTER_CHECK(::mprotect(begin, size, protection(access)) == 0);
}

}  // namespace

Result<std::unique_ptr<PageStore>> PageStore::reserve(std::size_t size) {
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(kPageSize)) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("the stand-in device wants pages of {} bytes: this machine's have {}",
                             kPageSize, ::sysconf(_SC_PAGESIZE))};
  }
  UniqueFd file(::memfd_create("muster-standin", MFD_CLOEXEC));
  if (!file.is_open() || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return system_error("the stand-in device", "reserve memory", errno);
  }
  auto* host = map_view(file.get(), size);
  auto* device = host != nullptr ? map_view(file.get(), size) : nullptr;
  if (device == nullptr) {
    const int failure = errno;
    if (host != nullptr) ::munmap(host, size);
    return system_error("the stand-in device", "reserve addresses", failure);
  }
  return std::unique_ptr<PageStore>(new PageStore(std::move(file), host, device, size));
}

PageStore::PageStore(UniqueFd file, std::byte* host, std::byte* device, std::size_t size)
    : file_(std::move(file)), host_(host), device_(device), size_(size) {}

PageStore::~PageStore() {
  ::munmap(host_, size_);
  ::munmap(device_, size_);
}

bool PageStore::contains(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  return at >= host_ && at < host_ + size_;
}

bool PageStore::device_view_contains(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  return at >= device_ && at < device_ + size_;
}

std::size_t PageStore::place_of(const void* address) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - host_);
}

void PageStore::set_host_access(std::size_t begin, std::size_t size, Access access) {
  protect(host_ + begin, size, access);
}

void PageStore::set_device_access(std::size_t begin, std::size_t size, Access access) {
  protect(device_ + begin, size, access);
}

void PageStore::drop(std::size_t begin, std::size_t size) {
  MUSTER_CHECK(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           static_cast<off_t>(begin), static_cast<off_t>(size)) == 0);
}

}  // namespace muster::standin
