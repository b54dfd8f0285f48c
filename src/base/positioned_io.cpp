// pread and pwrite to the end, whatever interrupts them.

#include "base/positioned_io.h"

#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace muster {

Result<std::size_t> read_at(int fd, std::span<std::byte> bytes, std::uint64_t offset,
                            const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto count =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0) {
      if (errno == EINTR) continue;
      return system_error(path.string(), "read", errno);
    }
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Status write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset,
                const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const auto count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0) {
      if (errno == EINTR) continue;
      return system_error(path.string(), "write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return Done{};
}

}  // namespace muster
