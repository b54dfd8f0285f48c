// A cache is a pool of blocks, a table to find entries and a list of how recently each was used; a
// put takes the blocks of the oldest entries. What is put is written to the file at once. When that
// fails the file falls behind the memory, and `tend` writes it anew, some blocks at a time, once
// the disk takes them again.

#include "cache/vector_cache.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "cache/block_pool.h"
#include "cache/cache_file.h"
#include "cache/entry_table.h"
#include "cache/recency_list.h"

namespace muster {
namespace {

// A full disk or a share that is away: soon at first, then no more often than a person would look.
constexpr double kFirstTrySeconds = 1;
constexpr double kLastTrySeconds = 60;
// 4 MiB, a few milliseconds of the loop that calls.
constexpr std::size_t kBlocksAtOnce = (4U << 20U) / kBlockSize;

// How the bytes that a cache may take are spent.
struct Division {
  std::size_t scratch_floats = 0;  // the longest vector that is kept
  std::size_t bucket_count = 1;
  std::size_t block_count = 0;
  std::uint64_t fixed_size = 0;  // all but the blocks
};

Division divide(const CacheOptions& options, std::uint64_t object_size) {
  // Far beyond any embedding, so that a vector that is read fits where it is put together.
  constexpr std::uint64_t kScratchSizeMost = 65'536 * sizeof(float);
  Division division;
  division.fixed_size = object_size + sizeof(BlockIndex);
  if (options.entries_most == 0 || options.size_most < division.fixed_size + 2 * kBlockSize) {
    return division;
  }
  const auto scratch_size = std::min(options.size_most / 16, kScratchSizeMost);
  division.scratch_floats = scratch_size / sizeof(float);
  std::uint64_t left = options.size_most - object_size - division.scratch_floats * sizeof(float);
  division.bucket_count = std::bit_floor(std::min(options.entries_most, left / kBlockSize));
  left -= division.bucket_count * sizeof(BlockIndex);
  division.block_count = std::min<std::uint64_t>(left / kBlockSize, kNoBlock);
  division.fixed_size = object_size + division.scratch_floats * sizeof(float) +
                        division.bucket_count * sizeof(BlockIndex);
  return division;
}

class BlockCache final : public VectorCache {
 public:
  BlockCache(const CacheOptions& options, const Division& division, BlockPool pool)
      : entries_most_(options.entries_most),
        ttl_seconds_(options.ttl ? std::optional(seconds(*options.ttl)) : std::nullopt),
        fixed_size_(division.fixed_size),
        pool_(std::move(pool)),
        recency_(pool_),
        table_(pool_, division.bucket_count),
        scratch_(division.scratch_floats) {}

  Status read(std::unique_ptr<CacheFile> file);

  std::span<const float> find(const CacheKey& key, double unix_seconds) override;
  void put(const CacheKey& key, std::span<const float> vector, double unix_seconds) override;
  void clear() override;
  CacheStatus status() const override;
  void tend(double unix_seconds) override;
  std::optional<Error> file_error() const override { return file_error_; }

 private:
  // Of an entry that a file holds, whether its blocks are there, its own, and its checksum right.
  bool is_whole(BlockIndex entry, const std::vector<bool>& is_claimed);
  void drop(BlockIndex entry);
  void make_room(std::size_t block_count);
  void write(BlockIndex entry);
  void note(const Status& status);
  bool writes_file() const { return file_ != nullptr && (!file_error_ || is_catching_up_); }

  std::uint64_t entries_most_;
  std::optional<double> ttl_seconds_;
  std::uint64_t fixed_size_;
  BlockPool pool_;
  RecencyList recency_;
  EntryTable table_;
  std::vector<float> scratch_;
  std::unique_ptr<CacheFile> file_;
  std::optional<Error> file_error_;  // the file is behind the memory
  bool is_catching_up_ = false;      // it takes what is put, and the blocks from caught_up_ on are
                                     // still to be written
  std::size_t caught_up_ = 0;
  std::optional<double> try_at_;  // by the wall clock; nullopt: at the next `tend`, in try_after_
  double try_after_ = kFirstTrySeconds;
  CacheStatus status_;
  std::uint64_t next_sequence_ = 0;
};

bool BlockCache::is_whole(BlockIndex entry, const std::vector<bool>& is_claimed) {
  const auto& head = pool_.entry(entry);
  const std::size_t end = is_claimed.size();
  const std::size_t count = block_count_of(head.dim);
  if (head.dim == 0 || head.dim > scratch_.size() || count > end) {
    return false;
  }
  BlockIndex last = entry;
  for (std::uint32_t part = 2; part <= count; ++part) {
    last = pool_.block(last).next;
    if (last >= end || pool_.block(last).part != part || is_claimed[last]) {
      return false;
    }
  }
  if (pool_.block(last).next != kNoBlock) {
    return false;
  }
  const auto vector = std::span(scratch_).first(head.dim);
  pool_.read(entry, vector);
  return entry_checksum(head, vector) == head.checksum;
}

Status BlockCache::read(std::unique_ptr<CacheFile> file) {
  const std::size_t end = MUSTER_TRY(file->read_blocks(pool_));
  file_ = std::move(file);
  status_.damaged_count = file_->was_broken() ? 1 : 0;
  pool_.set_used_end(end);

  std::vector<std::pair<std::uint64_t, BlockIndex>> entries;  // sequence, place
  for (BlockIndex index = 0; index < end; ++index) {
    if (pool_.block(index).part == 1) {
      entries.emplace_back(pool_.entry(index).sequence, index);
    }
  }
  // The newest first: of two entries for a key it is the right one, and it stays when not all may.
  std::sort(entries.rbegin(), entries.rend());
  next_sequence_ = entries.empty() ? 0 : entries.front().first + 1;

  std::vector<bool> is_claimed(end);
  for (const auto& [sequence, entry] : entries) {
    const bool is_good = is_whole(entry, is_claimed);
    const bool is_double = is_good && table_.find(pool_.entry(entry).key) != kNoBlock;
    if (is_good && !is_double && status_.entry_count < entries_most_) {
      for (auto index = entry; index != kNoBlock; index = pool_.block(index).next) {
        is_claimed[index] = true;
      }
      table_.add(entry);
      recency_.add_oldest(entry);
      ++status_.entry_count;
      continue;
    }
    ++(is_good ? status_.evicted_count : status_.damaged_count);
    // Told once, and never taken for an entry again.
    pool_.block(entry).part = 0;
    if (writes_file()) note(file_->write_blocks(entry, pool_.bytes(entry, 1)));
  }
  for (std::size_t index = end; index-- > 0;) {
    if (!is_claimed[index]) pool_.give_back_single(static_cast<BlockIndex>(index));
  }
  return Done{};
}

std::span<const float> BlockCache::find(const CacheKey& key, double unix_seconds) {
  const BlockIndex entry = table_.find(key);
  if (entry == kNoBlock) {
    ++status_.miss_count;
    return {};
  }
  const auto& head = pool_.entry(entry);
  // Also what a clock put into the future is too old; a time that is no number is.
  if (ttl_seconds_ && !(std::abs(unix_seconds - head.unix_seconds) <= *ttl_seconds_)) {
    drop(entry);
    ++status_.expired_count;
    ++status_.miss_count;
    return {};
  }
  const auto vector = std::span(scratch_).first(head.dim);
  recency_.touch(entry);
  pool_.read(entry, vector);
  ++status_.hit_count;
  return vector;
}

void BlockCache::put(const CacheKey& key, std::span<const float> vector, double unix_seconds) {
  const std::size_t count = block_count_of(vector.size());
  if (vector.empty() || vector.size() > scratch_.size() || count > pool_.block_count()) {
    return;
  }
  if (const BlockIndex old = table_.find(key); old != kNoBlock) {
    drop(old);
  }
  make_room(count);
  const BlockIndex entry = pool_.take(vector.size());
  auto& head = pool_.entry(entry);
  head.key = key;
  head.unix_seconds = unix_seconds;
  head.sequence = next_sequence_++;
  head.checksum = entry_checksum(head, vector);
  pool_.write(entry, vector);
  table_.add(entry);
  recency_.add_newest(entry);
  ++status_.entry_count;
  write(entry);
}

void BlockCache::make_room(std::size_t block_count) {
  while (status_.entry_count >= entries_most_ || pool_.free_count() < block_count) {
    drop(recency_.oldest());
    ++status_.evicted_count;
  }
}

void BlockCache::drop(BlockIndex entry) {
  table_.remove(entry);
  recency_.remove(entry);
  pool_.give_back(entry);
  --status_.entry_count;
}

// Runs of neighbouring blocks, in the entry's order: whatever it takes the place of loses its first
// block before any other.
void BlockCache::write(BlockIndex entry) {
  for (BlockIndex first = entry; writes_file() && first != kNoBlock;) {
    BlockIndex last = first;
    std::size_t count = 1;
    for (; pool_.block(last).next == last + 1; ++count) {
      ++last;
    }
    note(file_->write_blocks(first, pool_.bytes(first, count)));
    first = pool_.block(last).next;
  }
}

void BlockCache::note(const Status& status) {
  if (status) return;
  if (!file_error_) ++status_.file_failure_count;
  file_error_ = status.error();
  is_catching_up_ = false;
  try_at_.reset();
}

// In place and without emptying the file first: a block that the file has takes no room on the
// disk, and if the program ends before all are written, what was whole in the file and was not
// reached still is. An entry of which only some blocks are new is found by its checksum.
void BlockCache::tend(double unix_seconds) {
  if (!file_error_) return;
  if (!is_catching_up_) {
    if (!try_at_) try_at_ = unix_seconds + try_after_;
    // A clock that was put back must not make it wait for longer.
    if (unix_seconds < *try_at_ && *try_at_ - unix_seconds <= try_after_) return;
    is_catching_up_ = true;
    caught_up_ = 0;
    try_after_ = std::min(2 * try_after_, kLastTrySeconds);
  }
  const auto count =
      std::min(kBlocksAtOnce, pool_.used_end() - std::min(caught_up_, pool_.used_end()));
  if (count > 0) {
    const auto first = static_cast<BlockIndex>(caught_up_);
    note(file_->write_blocks(first, pool_.bytes(first, count)));
    if (!is_catching_up_) return;
    caught_up_ += count;
  }
  if (caught_up_ < pool_.used_end()) return;
  is_catching_up_ = false;
  file_error_.reset();
  try_after_ = kFirstTrySeconds;
}

void BlockCache::clear() {
  // To empty it needs no room, so that it is done whatever did not work before.
  if (file_) note(file_->clear());
  caught_up_ = 0;
  pool_.clear();
  table_.clear();
  recency_.clear();
  status_.entry_count = 0;
}

CacheStatus BlockCache::status() const {
  auto status = status_;
  status.has_file = file_ != nullptr;
  status.is_file_behind = file_error_.has_value();
  status.size = fixed_size_ + (pool_.block_count() - pool_.free_count()) * kBlockSize;
  return status;
}

}  // namespace

Result<std::unique_ptr<VectorCache>> VectorCache::open(const CacheOptions& options) {
  const auto division = divide(options, sizeof(BlockCache));
  auto pool = MUSTER_TRY(BlockPool::make(division.block_count));
  auto cache = std::make_unique<BlockCache>(options, division, std::move(pool));
  if (!options.file.empty() && division.block_count > 0) {
    auto file = MUSTER_TRY(CacheFile::open(options.file));
    MUSTER_TRY(cache->read(std::move(file)));
  }
  return std::unique_ptr<VectorCache>(std::move(cache));
}

}  // namespace muster
