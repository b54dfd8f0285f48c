#include "fake_nvml/mapped_block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/unique_fd.h"

namespace muster::fake_nvml {

Result<void*> map_shared(const std::filesystem::path& path, std::size_t size) {
  const UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) return system_error(path.string(), "open", errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return system_error(path.string(), "read", errno);
  const bool is_short = static_cast<std::size_t>(status.st_size) < size;
  if (is_short && ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
    return system_error(path.string(), "write", errno);
  }
  void* block = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (block == MAP_FAILED) return system_error(path.string(), "map", errno);
  return block;
}

}  // namespace muster::fake_nvml
