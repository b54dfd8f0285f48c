#include "telemetry/sample_ring.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace muster {
namespace {

/// Both sides of one ring, each with a mapping of its own as two processes have it.
class SampleRingTest : public testing::Test {
 protected:
  SampleRingTest()
      : collector_(std::move(*SampleRing::create())),
        sampler_(std::move(*SampleRing::map(UniqueFd(::dup(collector_.fd()))))) {}

  bool append(const std::string& text) { return sampler_.append(std::as_bytes(std::span(text))); }

  // "-" where there is none, the message of an error.
  std::string take() {
    std::vector<std::byte> record;
    const auto taken = collector_.take(record);
    if (!taken) return taken.error().message;
    if (!*taken) return "-";
    return {reinterpret_cast<const char*>(record.data()), record.size()};
  }

  SampleRing collector_;
  SampleRing sampler_;
};

TEST_F(SampleRingTest, RecordsComeInTheirOrder) {
  EXPECT_EQ(take(), "-");
  EXPECT_TRUE(append("one"));
  EXPECT_TRUE(append(""));
  EXPECT_TRUE(append("three and more"));
  EXPECT_EQ(take(), "one");
  EXPECT_EQ(take(), "");
  EXPECT_TRUE(append("four"));
  EXPECT_EQ(take(), "three and more");
  EXPECT_EQ(take(), "four");
  EXPECT_EQ(take(), "-");
}

TEST_F(SampleRingTest, AFullRingLosesTheNewRecordAndKeepsTheOld) {
  // With its size and rounded up to eights, a record takes 100,008 of 1,048,576 bytes: after ten of
  // them 48,496 are left.
  const std::string big(100'000, 'x');
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(append(big));
  EXPECT_FALSE(append(big));
  EXPECT_TRUE(append("small"));
  EXPECT_EQ(take(), big);
  // 100,008 are free at the front; the 48,480 at the end are skipped, since a record is in one
  // piece.
  EXPECT_FALSE(append(big + "12345678"));
  EXPECT_TRUE(append(big));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(take(), big);
  EXPECT_EQ(take(), "small");
  EXPECT_EQ(take(), big);
  EXPECT_EQ(take(), "-");
  EXPECT_FALSE(append(std::string(SampleRing::kCapacity, 'x')));
}

TEST_F(SampleRingTest, RecordsOfAllSizesPassTheEndOfTheRing) {
  // A hundred are under way at a time, so that the ring is never empty; 13 MB pass in all.
  const auto text = [](std::size_t number) {
    return std::string(number * 37 % 2600, static_cast<char>('a' + number % 26));
  };
  for (std::size_t i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(append(text(i))) << i;
    if (i >= 100) {
      ASSERT_EQ(take(), text(i - 100)) << i;
    }
  }
}

TEST_F(SampleRingTest, ARingThatIsEmptiedUsesFewPages) {
  const std::string record(1000, 'x');
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(append(record));
    ASSERT_EQ(take(), record);
  }
  struct stat file {};
  ASSERT_EQ(::fstat(collector_.fd(), &file), 0);
  constexpr int kBlock = 512;  // of st_blocks, whatever the file system
  EXPECT_LE(file.st_blocks * kBlock, 16 * 1024);
}

TEST_F(SampleRingTest, ARingThatIsEmptiedHasAllItsRoomAgain) {
  append("small");
  EXPECT_EQ(take(), "small");
  const std::string big(100'000, 'x');
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(append(big)) << i;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(take(), big);
  append("small");
  EXPECT_FALSE(sampler_.begin_notice());
}

TEST_F(SampleRingTest, ALongRecordAfterAShortOneThatWasTakenIsWhole) {
  // From the front the long one would lie over the place from which the collector is sent there.
  for (const std::size_t size : {8U, 500U, 16U, 4000U, 40U, 20'000U}) {
    const std::string text(size, 'x');
    EXPECT_TRUE(append(text));
    EXPECT_EQ(take(), text);
    EXPECT_EQ(take(), "-");
  }
}

TEST_F(SampleRingTest, TwoThreadsPassEveryRecordOnce) {
  constexpr std::size_t kRecords = 200'000;
  const auto text = [](std::size_t number) {
    return std::to_string(number) + std::string(number % 91, ' ');
  };
  const std::jthread appending([&] {
    for (std::size_t i = 0; i < kRecords; ++i) {
      while (!append(text(i))) std::this_thread::yield();
    }
  });
  for (std::size_t i = 0; i < kRecords; ++i) {
    auto found = take();
    while (found == "-") found = take();
    ASSERT_EQ(found, text(i));
  }
}

TEST_F(SampleRingTest, TellsOnceWhereItIsWished) {
  append("one");
  EXPECT_FALSE(sampler_.begin_notice());
  collector_.wish_notices(true);
  EXPECT_TRUE(sampler_.begin_notice());
  append("two");
  EXPECT_FALSE(sampler_.begin_notice());  // the first is still under way
  collector_.begin_taking();
  EXPECT_EQ(take(), "one");
  append("three");
  EXPECT_TRUE(sampler_.begin_notice());
  collector_.begin_taking();
  collector_.wish_notices(false);
  EXPECT_FALSE(sampler_.begin_notice());
}

TEST_F(SampleRingTest, TellsUnaskedOfARingThatIsHalfFull) {
  const std::string big(100'000, 'x');
  for (int i = 0; i < 5; ++i) append(big);
  EXPECT_FALSE(sampler_.begin_notice());
  append(big);
  EXPECT_TRUE(sampler_.begin_notice());
}

TEST_F(SampleRingTest, WhatIsNoRecordIsRefused) {
  append(std::string(2000, 'x'));
  append("second");
  // Over all behind the positions and the first record's size: 0x7f7f7f7f is larger than the ring,
  // and 0xffffffff says that the next record is at the front, where none was appended again.
  for (const char junk : {'\x7f', '\xff'}) {
    SCOPED_TRACE(static_cast<int>(junk));
    const std::string bytes(SampleRing::kCapacity - 1024, junk);
    ASSERT_EQ(::pwrite(collector_.fd(), bytes.data(), bytes.size(), 1024), ::ssize_t(bytes.size()));
    if (junk == '\x7f') {
      EXPECT_EQ(take().size(), 2000U);
    }
    EXPECT_EQ(take(), "the sampler's shared memory holds what is no sample");
  }
  collector_.clear();
  EXPECT_EQ(take(), "-");
  EXPECT_TRUE(append("next"));
  EXPECT_EQ(take(), "next");
}

}  // namespace
}  // namespace muster
