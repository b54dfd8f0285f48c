#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/unique_fd.h"
#include "cache/block_pool.h"
#include "cache/cache_file.h"
#include "cache/vector_cache.h"

namespace {

using muster::VectorCache;

constexpr std::uint64_t kSizeMost = 64 << 10;

// An empty cache's header, so that what comes after it is looked at.
std::vector<std::uint8_t> good_header(const std::filesystem::path& path, int fd) {
  MUSTER_CHECK(VectorCache::open({.size_most = kSizeMost, .file = path}).has_value());
  std::vector<std::uint8_t> header(muster::kCacheHeaderSize);
  MUSTER_CHECK(::pread(fd, header.data(), header.size(), 0) == static_cast<ssize_t>(header.size()));
  return header;
}

// Gives entries the checksum of what their blocks hold, so that the chains and sizes are met that
// a wrong checksum hides.
void mend(std::vector<std::uint8_t>& blocks) {
  constexpr std::size_t kDimMost = 1024;  // what a cache of kSizeMost keeps
  const std::size_t end = blocks.size() / muster::kBlockSize;
  for (std::size_t index = 0; index < end; ++index) {
    std::uint8_t* const place = blocks.data() + index * muster::kBlockSize;
    muster::EntryHead head;
    std::memcpy(&head, place, sizeof head);
    if (head.link.part != 1) continue;
    head.dim %= kDimMost + 2;
    if (head.dim == 0) continue;  // an entry without values is damaged whatever its checksum
    std::vector<float> vector(head.dim);
    const auto in_first = std::min<std::size_t>(head.dim, muster::kFloatsInFirst);
    std::memcpy(vector.data(), place + sizeof head, in_first * sizeof(float));
    auto next = head.link.next;
    for (std::size_t done = in_first; done < head.dim && next < end;) {
      const std::uint8_t* const from = blocks.data() + next * muster::kBlockSize;
      const auto count = std::min(head.dim - done, muster::kFloatsInOther);
      std::memcpy(vector.data() + done, from + sizeof(muster::BlockHead), count * sizeof(float));
      std::memcpy(&next, from, sizeof next);
      done += count;
    }
    head.checksum = muster::entry_checksum(head, vector);
    std::memcpy(place, &head, sizeof head);
  }
}

}  // namespace

// Any bytes as a cache file: opened or refused; what it holds can be used, and a second opening
// finds no damage any more.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const muster::UniqueFd fd(::memfd_create("cache", MFD_CLOEXEC));
  const std::filesystem::path path = "/proc/self/fd/" + std::to_string(fd.get());
  std::vector<std::uint8_t> file(data + 1, data + size);
  if (data[0] % 4 != 0) {
    if (data[0] % 4 == 1) mend(file);
    const auto header = good_header(path, fd.get());
    file.insert(file.begin(), header.begin(), header.end());
  }
  MUSTER_CHECK(::ftruncate(fd.get(), 0) == 0);
  MUSTER_CHECK(::pwrite(fd.get(), file.data(), file.size(), 0) ==
               static_cast<ssize_t>(file.size()));

  std::uint64_t entry_count = 0;
  {
    auto cache = VectorCache::open({.size_most = kSizeMost, .file = path});
    if (!cache) return 0;
    MUSTER_CHECK((*cache)->status().size <= kSizeMost);
    for (std::uint8_t i = 0; i < 40; ++i) {
      const auto key = muster::cache_key({}, {reinterpret_cast<const char*>(&i), 1}, false);
      const std::vector<float> vector(std::size_t{i} * 25 + 1, i);
      (*cache)->put(key, vector, 0);
      MUSTER_CHECK((*cache)->find(key, 0).size() == vector.size());
    }
    MUSTER_CHECK((*cache)->status().size <= kSizeMost);
    MUSTER_CHECK(!(*cache)->file_error());
    entry_count = (*cache)->status().entry_count;
  }
  const auto again = VectorCache::open({.size_most = kSizeMost, .file = path});
  MUSTER_CHECK(again.has_value());
  MUSTER_CHECK((*again)->status().damaged_count == 0);
  MUSTER_CHECK((*again)->status().entry_count >= entry_count);
  return 0;
}
