// The file mirrors the pool, block for block. Writes go through pwrite, never through a mapping:
// with a mapping a full disk is a SIGBUS, with pwrite it is an error that the cache can outlive.

#include "cache/cache_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "base/hash.h"
#include "base/positioned_io.h"

namespace muster {
namespace {

constexpr std::string_view kMagic = "MUSTRVEC";
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint32_t kVersion = 1;

// What the header begins with; zeros follow up to kCacheHeaderSize.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t byte_order;
  std::uint32_t version;
  std::uint32_t block_size;
  std::uint32_t header_size;
  std::uint64_t checksum;  // XXH3 (64 bits) of the 24 bytes before it
};
static_assert(sizeof(Header) == 32);

std::uint64_t checksum_of(const Header& header) {
  return hash64({reinterpret_cast<const char*>(&header), offsetof(Header, checksum)});
}

Header own_header() {
  Header header{.magic = {},
                .byte_order = kByteOrder,
                .version = kVersion,
                .block_size = kBlockSize,
                .header_size = kCacheHeaderSize,
                .checksum = 0};
  std::copy(kMagic.begin(), kMagic.end(), header.magic.begin());
  header.checksum = checksum_of(header);
  return header;
}

}  // namespace

Result<std::unique_ptr<CacheFile>> CacheFile::open(const std::filesystem::path& path) {
  // Vectors tell of their texts: nobody else reads them.
  auto fd = MUSTER_TRY(open_regular_file(path, O_RDWR | O_CREAT, 0600)).fd;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error{ErrorKind::Unavailable,
                   fmt::format("{}: another process has this cache open", path.string())};
    }
    return system_error(path.string(), "lock", errno);
  }
  // Only now: until the lock was ours the size could change.
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return system_error(path.string(), "read", errno);
  }
  std::unique_ptr<CacheFile> file(new CacheFile(path, std::move(fd)));
  MUSTER_TRY(file->read_header(static_cast<std::uint64_t>(info.st_size)));
  return file;
}

Status CacheFile::read_header(std::uint64_t size) {
  if (size == 0) {
    return start_anew();
  }
  Header header{};
  const auto bytes = std::as_writable_bytes(std::span(&header, 1));
  const std::size_t count = MUSTER_TRY(read_at(fd_.get(), bytes, 0, path_));
  const std::string_view magic(header.magic.data(), std::min(count, kMagic.size()));
  if (magic != kMagic.substr(0, magic.size())) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{}: not a vector cache, and not overwritten", path_.string())};
  }
  const Header own = own_header();
  if (count == sizeof header && size >= kCacheHeaderSize &&
      std::memcmp(&header, &own, sizeof own) == 0) {
    return Done{};
  }
  // A whole header of another version is no damage.
  was_broken_ =
      count < sizeof header || header.checksum != checksum_of(header) || size < kCacheHeaderSize;
  return start_anew();
}

Status CacheFile::start_anew() {
  std::array<std::byte, kCacheHeaderSize> page{};
  const Header header = own_header();
  std::memcpy(page.data(), &header, sizeof header);
  if (::ftruncate(fd_.get(), 0) != 0) {
    return system_error(path_.string(), "empty", errno);
  }
  MUSTER_TRY(write_at(fd_.get(), page, 0, path_));
  // The only wait for the disk: a file that a machine crash leaves without its header would be
  // taken for a file of something else.
  if (::fsync(fd_.get()) != 0) {
    return system_error(path_.string(), "sync", errno);
  }
  return Done{};
}

Result<std::size_t> CacheFile::read_blocks(BlockPool& pool) {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) {
    return system_error(path_.string(), "read", errno);
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const std::uint64_t in_file =
      size > kCacheHeaderSize ? (size - kCacheHeaderSize) / kBlockSize : 0;
  const auto count = std::min<std::uint64_t>(in_file, pool.block_count());
  const std::size_t read =
      MUSTER_TRY(read_at(fd_.get(), pool.bytes(0, count), kCacheHeaderSize, path_));
  const std::size_t filled = read / kBlockSize;
  const std::uint64_t end = kCacheHeaderSize + filled * kBlockSize;
  if (size > end && ::ftruncate(fd_.get(), static_cast<off_t>(end)) != 0) {
    return system_error(path_.string(), "shorten", errno);
  }
  return filled;
}

Status CacheFile::write_blocks(BlockIndex first, std::span<const std::byte> blocks) {
  return write_at(fd_.get(), blocks, kCacheHeaderSize + std::uint64_t{first} * kBlockSize, path_);
}

Status CacheFile::clear() {
  if (::ftruncate(fd_.get(), kCacheHeaderSize) != 0) {
    return system_error(path_.string(), "empty", errno);
  }
  return Done{};
}

}  // namespace muster
