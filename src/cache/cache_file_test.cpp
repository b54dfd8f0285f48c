#include "cache/cache_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/full_disk_fixture.h"
#include "cache/block_pool.h"
#include "cache/cache_fixture.h"

namespace muster {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::uint64_t kSize = 1 << 20;

class CacheFileTest : public testing::Test {
 protected:
  CacheFileTest() {
    std::string pattern = (fs::temp_directory_path() / "muster-cache-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CacheFileTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path path() const { return folder_ / "vectors"; }

  Result<std::unique_ptr<VectorCache>> try_open(std::uint64_t size_most = kSize) const {
    return VectorCache::open({.size_most = size_most, .file = path()});
  }
  std::unique_ptr<VectorCache> open_it(std::uint64_t size_most = kSize) const {
    auto cache = try_open(size_most);
    if (!cache) {
      ADD_FAILURE() << cache.error().message;
      return nullptr;
    }
    return std::move(*cache);
  }

  // `count` vectors of 384 floats, seven blocks each, at places 0, 7, 14, …
  void fill(std::uint64_t count) const {
    const auto cache = open_it();
    for (std::uint64_t i = 0; i < count; ++i) cache->put(key_of(i), vector_of(i, 384), 0);
  }

  void overwrite(std::uint64_t offset, std::string_view bytes) const {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  fs::path folder_;
};

std::uint64_t place_of(std::uint64_t block) { return kCacheHeaderSize + block * kBlockSize; }

TEST_F(CacheFileTest, KeepsAllBitsOverAReopening) {
  {
    const auto cache = open_it();
    for (const std::size_t dim : {1u, 44u, 45u, 384u, 1024u, 4096u}) {
      cache->put(key_of(dim), vector_of(dim, dim), 0);
    }
  }
  const auto cache = open_it();
  for (const std::size_t dim : {1u, 44u, 45u, 384u, 1024u, 4096u}) {
    EXPECT_TRUE(is_same(cache->find(key_of(dim), 0), vector_of(dim, dim))) << dim;
  }
  EXPECT_EQ(cache->status().entry_count, 6);
  EXPECT_EQ(cache->status().damaged_count, 0);
  EXPECT_FALSE(cache->file_error());
}

TEST_F(CacheFileTest, IsReadableByItsOwnerAlone) {
  fill(1);
  EXPECT_EQ(fs::status(path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CacheFileTest, IsRefusedToASecondOpener) {
  {
    const auto first = open_it();
    const auto second = try_open();
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().kind, ErrorKind::Unavailable);
    EXPECT_EQ(second.error().message, path().string() + ": another process has this cache open");
  }
  EXPECT_TRUE(try_open().has_value()) << "free again";
}

TEST_F(CacheFileTest, NeverGrowsBeyondItsSize) {
  {
    const auto cache = open_it();
    for (std::uint64_t i = 0; i < 2000; ++i) {
      cache->put(key_of(i), vector_of(i, i % 2 == 0 ? 384 : 900), 0);
    }
    EXPECT_GT(cache->status().evicted_count, 0);
  }
  EXPECT_LE(fs::file_size(path()), kCacheHeaderSize + kSize);
  const auto cache = open_it();
  EXPECT_EQ(cache->status().damaged_count, 0);
  EXPECT_TRUE(is_same(cache->find(key_of(1999), 0), vector_of(1999, 900)));
}

TEST_F(CacheFileTest, ThrowsOutTheOldestPutFirstAfterAReopening) {
  fill(3);
  auto cache = VectorCache::open({.size_most = kSize, .entries_most = 3, .file = path()});
  ASSERT_TRUE(cache.has_value());
  (*cache)->put(key_of(9), vector_of(9, 384), 0);
  EXPECT_TRUE((*cache)->find(key_of(0), 0).empty());
  EXPECT_FALSE((*cache)->find(key_of(1), 0).empty());
  EXPECT_FALSE((*cache)->find(key_of(2), 0).empty());
}

TEST_F(CacheFileTest, KeepsTheNewestWhenFewerEntriesAreAllowed) {
  fill(10);
  auto cache = VectorCache::open({.size_most = kSize, .entries_most = 4, .file = path()});
  ASSERT_TRUE(cache.has_value());
  EXPECT_EQ((*cache)->status().entry_count, 4);
  EXPECT_EQ((*cache)->status().evicted_count, 6);
  EXPECT_TRUE((*cache)->find(key_of(5), 0).empty());
  EXPECT_FALSE((*cache)->find(key_of(6), 0).empty());
}

TEST_F(CacheFileTest, BecomesShorterWithASmallerSize) {
  fill(300);
  ASSERT_GT(fs::file_size(path()), 256u << 10);
  const auto cache = open_it(256 << 10);
  EXPECT_LE(fs::file_size(path()), kCacheHeaderSize + (256 << 10));
  EXPECT_GT(cache->status().entry_count, 100);
  EXPECT_LE(cache->status().size, 256u << 10);
}

TEST_F(CacheFileTest, TheTimeOfAnEntryGoesOnOverAReopening) {
  {
    const auto cache = open_it();
    cache->put(key_of(1), vector_of(1, 8), 1000);
  }
  auto cache = VectorCache::open({.size_most = kSize, .ttl = 60s, .file = path()});
  ASSERT_TRUE(cache.has_value());
  EXPECT_FALSE((*cache)->find(key_of(1), 1059).empty());
  EXPECT_TRUE((*cache)->find(key_of(1), 1061).empty());
}

TEST_F(CacheFileTest, ClearEmptiesTheFile) {
  {
    const auto cache = open_it();
    cache->put(key_of(1), vector_of(1, 384), 0);
    cache->clear();
  }
  EXPECT_EQ(fs::file_size(path()), kCacheHeaderSize);
  EXPECT_EQ(open_it()->status().entry_count, 0);
}

TEST_F(CacheFileTest, LeavesOutAnEntryWithOneWrongBitAndTellsItOnce) {
  fill(3);
  overwrite(place_of(7 + 3) + 100, "?");  // the fourth block of the second entry
  {
    const auto cache = open_it();
    EXPECT_EQ(cache->status().damaged_count, 1);
    EXPECT_EQ(cache->status().entry_count, 2);
    EXPECT_TRUE(cache->find(key_of(1), 0).empty());
    EXPECT_TRUE(is_same(cache->find(key_of(2), 0), vector_of(2, 384)));
  }
  EXPECT_EQ(open_it()->status().damaged_count, 0);
}

TEST_F(CacheFileTest, LeavesOutWhatWasCutOff) {
  fill(3);
  fs::resize_file(path(), place_of(7 + 3) + 10);
  const auto cache = open_it();
  EXPECT_EQ(cache->status().damaged_count, 1);  // of the third nothing is left to count
  EXPECT_EQ(cache->status().entry_count, 1);
  EXPECT_TRUE(is_same(cache->find(key_of(0), 0), vector_of(0, 384)));
}

TEST_F(CacheFileTest, ABrokenHeaderStartsAnEmptyOne) {
  fill(3);
  overwrite(20, "!");
  const auto cache = open_it();
  EXPECT_EQ(cache->status().damaged_count, 1);
  EXPECT_EQ(cache->status().entry_count, 0);
  cache->put(key_of(1), vector_of(1, 8), 0);
  EXPECT_FALSE(cache->file_error());
}

TEST_F(CacheFileTest, AHeaderThatWasCutOffStartsAnEmptyOne) {
  fill(3);
  fs::resize_file(path(), 5);
  EXPECT_EQ(open_it()->status().damaged_count, 1);
  EXPECT_EQ(fs::file_size(path()), kCacheHeaderSize);
}

TEST_F(CacheFileTest, AFileOfSomethingElseIsRefusedAndLeftAsItIs) {
  ASSERT_TRUE(write_file_atomically(path(), "my only copy of the novel").has_value());
  const auto cache = try_open();
  ASSERT_FALSE(cache.has_value());
  EXPECT_EQ(cache.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(*read_file(path()), "my only copy of the novel");
}

TEST_F(CacheFileTest, AFolderThatIsNotThereIsAnError) {
  const auto cache = VectorCache::open({.file = folder_ / "no" / "vectors"});
  ASSERT_FALSE(cache.has_value());
  EXPECT_EQ(cache.error().kind, ErrorKind::NotFound);
}

TEST_F(CacheFileTest, AFileThatShrinksUnderneathIsNoSignal) {
  const auto cache = open_it();
  for (std::uint64_t i = 0; i < 10; ++i) cache->put(key_of(i), vector_of(i, 384), 0);
  fs::resize_file(path(), 0);
  for (std::uint64_t i = 0; i < 20; ++i) cache->put(key_of(i), vector_of(i, 384), 0);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_TRUE(is_same(cache->find(key_of(i), 0), vector_of(i, 384)));
  }
}

// The disk is full for a while: no put comes any more, and what memory has is in the file again.
TEST_F(CacheFileTest, CatchesUpWhenTheDiskHasRoomAgain) {
  const auto cache = open_it();
  cache->put(key_of(0), vector_of(0, 384), 0);
  std::optional<FullDisk> disk(std::in_place, kCacheHeaderSize + 8 * kBlockSize);
  for (std::uint64_t i = 1; i < 20; ++i) cache->put(key_of(i), vector_of(i, 384), 0);
  ASSERT_TRUE(cache->file_error());
  EXPECT_EQ(cache->status().file_failure_count, 1) << "however many puts did not come there";
  double now = 1000;
  cache->tend(now);         // it will try in 1 s
  cache->tend(now += 0.5);  // too early
  cache->tend(now += 0.6);  // still full: again in 2 s
  EXPECT_TRUE(cache->file_error());
  disk.reset();
  cache->tend(now);
  cache->tend(now += 1.9);
  EXPECT_TRUE(cache->file_error()) << "it waits longer each time";
  cache->tend(now += 0.2);
  EXPECT_FALSE(cache->file_error());
  EXPECT_EQ(cache->status().entry_count, 20) << "memory was never without them";
  cache->put(key_of(20), vector_of(20, 384), 0);
  EXPECT_EQ(cache->status().file_failure_count, 1);

  fs::copy(path(), folder_ / "as-after-kill-9");
  const auto copy = VectorCache::open({.size_most = kSize, .file = folder_ / "as-after-kill-9"});
  ASSERT_TRUE(copy);
  EXPECT_EQ((*copy)->status().entry_count, 21);
  EXPECT_EQ((*copy)->status().damaged_count, 0);
  for (std::uint64_t i = 0; i <= 20; ++i) {
    EXPECT_TRUE(is_same((*copy)->find(key_of(i), 0), vector_of(i, 384))) << i;
  }
}

TEST_F(CacheFileTest, AFullDiskTurnsTheFileOffAndNotTheCache) {
  {
    const FullDisk disk(place_of(7 * 5 + 2));
    const auto cache = open_it();
    for (std::uint64_t i = 0; i < 10; ++i) cache->put(key_of(i), vector_of(i, 384), 0);
    ASSERT_TRUE(cache->file_error());
    EXPECT_EQ(cache->file_error()->kind, ErrorKind::ResourceExhausted);
    for (std::uint64_t i = 0; i < 10; ++i) {
      EXPECT_TRUE(is_same(cache->find(key_of(i), 0), vector_of(i, 384)));
    }
  }
  const auto cache = open_it();
  EXPECT_EQ(cache->status().entry_count, 5) << "what was whole before the disk was full";
  EXPECT_EQ(cache->status().damaged_count, 1);
}

std::size_t dim_of(std::uint64_t number) { return 30 + number * 37 % 700; }

// Puts vectors without end, and tells the number of each one that is done.
[[noreturn]] void put_until_killed(const fs::path& path, int progress) {
  auto cache = VectorCache::open({.size_most = kSize, .file = path});
  for (std::uint64_t i = 0; cache; ++i) {
    (*cache)->put(key_of(i), vector_of(i, dim_of(i)), 0);
    if (::write(progress, &i, sizeof i) != sizeof i) break;
  }
  ::_exit(1);
}

// Kills the child once it has put `count` vectors; returns the number of the last it told.
std::uint64_t kill_after(pid_t child, int progress, std::uint64_t count) {
  std::uint64_t last = 0;
  while (last < count && ::read(progress, &last, sizeof last) == sizeof last) {
  }
  ::kill(child, SIGKILL);
  int state = 0;
  ::waitpid(child, &state, 0);
  EXPECT_TRUE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL);
  while (::read(progress, &last, sizeof last) == sizeof last) {
  }
  return last;
}

TEST_F(CacheFileTest, SurvivesAKillAtAnyInstant) {
  std::uint64_t random = 2463534242;  // xorshift64, Marsaglia 2003
  std::uint64_t torn = 0;
  for (int round = 0; round < 25; ++round) {
    fs::remove(path());
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) put_until_killed(path(), ends[1]);
    ::close(ends[1]);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const auto last = kill_after(child, ends[0], 1 + random % 3000);
    ::close(ends[0]);

    const auto cache = open_it();
    const auto damaged = cache->status().damaged_count;
    EXPECT_LE(damaged, 1) << "only the put that was cut short";
    torn += damaged;
    // The newest hundred fit; the very last may be the one whose place the torn one was taking.
    const auto count = cache->status().entry_count;
    EXPECT_GE(count + 1, std::min<std::uint64_t>(last + 1, 100));
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i <= last + 1; ++i) {
      const auto vector = cache->find(key_of(i), 0);
      if (vector.empty()) continue;
      ASSERT_TRUE(is_same(vector, vector_of(i, dim_of(i)))) << i;
      ++found;
    }
    EXPECT_EQ(found, count) << "nothing that was never put";
    EXPECT_FALSE(cache->find(key_of(last), 0).empty()) << "a put that was told is there";
  }
  RecordProperty("torn", static_cast<int>(torn));
}

// A cut inside a put, at each of its blocks: as if the kill had come there.
TEST_F(CacheFileTest, AnEntryIsThereWhollyOrNotAtAll) {
  fill(1);
  const auto before = *read_file(path());
  fill(2);
  const auto after = *read_file(path());
  for (std::uint64_t block = 0; block <= 7; ++block) {
    const auto size = place_of(7 + block);
    ASSERT_TRUE(write_file_atomically(path(), after.substr(0, size)).has_value());
    const auto cache = open_it();
    EXPECT_TRUE(is_same(cache->find(key_of(0), 0), vector_of(0, 384)));
    EXPECT_EQ(cache->find(key_of(1), 0).empty(), block < 7);
    EXPECT_EQ(cache->status().damaged_count, block == 0 || block == 7 ? 0 : 1);
  }
}

}  // namespace
}  // namespace muster
