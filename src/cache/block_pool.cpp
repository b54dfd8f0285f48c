// Blocks of one size in one anonymous mapping, and free blocks as a list of chains: a whole entry
// is given back in constant time. The checksum covers the head of an entry and its floats, so that
// an entry which was half written when the machine died is noticed when the file is read again.

#include "cache/block_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "base/prefetch.h"

namespace muster {
namespace {

// Beyond it the processor has seen the direction by itself.
constexpr std::size_t kPrefetchSizeMost = 4096;

// What is hashed for an entry, without padding.
struct Summed {
  CacheKey key;
  double unix_seconds;
  std::uint64_t sequence;
  std::uint64_t dim;
  std::uint64_t vector;
};
static_assert(sizeof(Summed) == 64);

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::uint64_t entry_checksum(const EntryHead& head, std::span<const float> vector) {
  const Summed summed{head.key, head.unix_seconds, head.sequence, head.dim,
                      hash64(text_of(std::as_bytes(vector)))};
  return hash64(text_of(std::as_bytes(std::span(&summed, 1))));
}

Result<BlockPool> BlockPool::make(std::size_t block_count) {
  if (block_count == 0) {
    return BlockPool(nullptr, 0);
  }
  void* data = ::mmap(nullptr, block_count * kBlockSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return system_error(fmt::format("cache of {} bytes", block_count * kBlockSize), "allocate",
                        errno);
  }
  // Advice only: a lookup in hundreds of megabytes misses the TLB of small pages each time.
  ::madvise(data, block_count * kBlockSize, MADV_HUGEPAGE);
  return BlockPool(static_cast<std::byte*>(data), block_count);
}

BlockPool::BlockPool(BlockPool&& other) noexcept { *this = std::move(other); }

BlockPool& BlockPool::operator=(BlockPool&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(block_count_, other.block_count_);
  std::swap(used_end_, other.used_end_);
  std::swap(free_count_, other.free_count_);
  std::swap(first_free_, other.first_free_);
  return *this;
}

BlockPool::~BlockPool() {
  if (data_ != nullptr) {
    ::munmap(data_, block_count_ * kBlockSize);
  }
}

BlockIndex BlockPool::take_one() {
  if (first_free_ == kNoBlock) {
    return static_cast<BlockIndex>(used_end_++);
  }
  const BlockIndex taken = first_free_;
  const BlockIndex rest = block(taken).next;
  const BlockIndex chain = entry(taken).older;
  if (rest != kNoBlock) {
    entry(rest).older = chain;
    first_free_ = rest;
  } else {
    first_free_ = chain;
  }
  --free_count_;
  return taken;
}

BlockIndex BlockPool::take(std::size_t dim) {
  const std::size_t count = block_count_of(dim);
  const BlockIndex first = take_one();
  BlockIndex last = first;
  block(first) = {.next = kNoBlock, .part = 1};
  for (std::uint32_t part = 2; part <= count; ++part) {
    const BlockIndex next = take_one();
    block(last).next = next;
    block(next) = {.next = kNoBlock, .part = part};
    last = next;
  }
  entry(first).dim = static_cast<std::uint32_t>(dim);
  return first;
}

void BlockPool::push_free(BlockIndex first, std::size_t count) {
  entry(first).older = first_free_;
  first_free_ = first;
  free_count_ += count;
}

void BlockPool::give_back(BlockIndex first) { push_free(first, block_count_of(entry(first).dim)); }

void BlockPool::give_back_single(BlockIndex index) {
  block(index) = {.next = kNoBlock, .part = 0};
  push_free(index, 1);
}

void BlockPool::write(BlockIndex first, std::span<const float> vector) {
  std::size_t count = std::min(vector.size(), kFloatsInFirst);
  std::memcpy(at(first) + sizeof(EntryHead), vector.data(), count * sizeof(float));
  vector = vector.subspan(count);
  for (auto index = block(first).next; !vector.empty(); index = block(index).next) {
    count = std::min(vector.size(), kFloatsInOther);
    std::memcpy(at(index) + sizeof(BlockHead), vector.data(), count * sizeof(float));
    vector = vector.subspan(count);
  }
}

void BlockPool::read(BlockIndex first, std::span<float> vector) const {
  // Most entries lie in neighbouring blocks. Asked for all at once, they come in the time of one;
  // along the chain each would wait for the one before.
  const auto size = std::min(block_count_of(vector.size()) * kBlockSize, kPrefetchSizeMost);
  prefetch({at(first), size});
  std::size_t count = std::min(vector.size(), kFloatsInFirst);
  std::memcpy(vector.data(), at(first) + sizeof(EntryHead), count * sizeof(float));
  vector = vector.subspan(count);
  auto index = entry(first).link.next;
  while (!vector.empty()) {
    count = std::min(vector.size(), kFloatsInOther);
    std::memcpy(vector.data(), at(index) + sizeof(BlockHead), count * sizeof(float));
    vector = vector.subspan(count);
    index = reinterpret_cast<const BlockHead*>(at(index))->next;
  }
}

void BlockPool::clear() {
  if (data_ != nullptr) {
    ::madvise(data_, block_count_ * kBlockSize, MADV_DONTNEED);
  }
  used_end_ = 0;
  free_count_ = 0;
  first_free_ = kNoBlock;
}

}  // namespace muster
