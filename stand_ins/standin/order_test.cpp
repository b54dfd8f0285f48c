#include "standin/order.h"

#include <gtest/gtest.h>

namespace muster::standin {
namespace {

MemoryUse write_at(StreamNumber stream, std::uint64_t count) {
  return {.at = {stream, count}, .operation = "a write", .is_write = true};
}
MemoryUse read_at(StreamNumber stream, std::uint64_t count) {
  return {.at = {stream, count}, .operation = "a read", .is_write = false};
}

Past past_with(StreamNumber stream, std::uint64_t count) {
  Past past;
  past.add(Moment{stream, count});
  return past;
}

TEST(Past, KnowsWhatCameBeforeWhatItKnows) {
  const auto past = past_with(3, 7);
  EXPECT_TRUE(past.has({3, 7}));
  EXPECT_TRUE(past.has({3, 1}));
  EXPECT_FALSE(past.has({3, 8}));
  EXPECT_FALSE(past.has({2, 1}));
  EXPECT_FALSE(past.has({9, 1}));
}

TEST(Past, TwoTogetherKnowTheLaterOfEachStream) {
  auto past = past_with(0, 5);
  auto other = past_with(0, 2);
  other.add(Moment{4, 1});
  past.add(other);
  EXPECT_TRUE(past.has({0, 5}));
  EXPECT_TRUE(past.has({4, 1}));
  EXPECT_FALSE(past.has({4, 2}));
}

TEST(UseHistory, OneStreamIsInOrderWithItself) {
  UseHistory history;
  history.add(write_at(1, 1));
  EXPECT_FALSE(history.conflict(read_at(1, 2), {}));
  EXPECT_FALSE(history.conflict(write_at(1, 2), {}));
}

TEST(UseHistory, AReadOfWhatAnotherStreamWritesMustComeBehindIt) {
  UseHistory history;
  history.add(write_at(1, 4));
  const auto earlier = history.conflict(read_at(2, 1), past_with(1, 3));
  ASSERT_TRUE(earlier);
  EXPECT_EQ(earlier->operation, "a write");
  EXPECT_FALSE(history.conflict(read_at(2, 1), past_with(1, 4)));
}

TEST(UseHistory, ReadsNeedNoOrderAndAWriteMustComeBehindAllOfThem) {
  UseHistory history;
  history.add(read_at(1, 1));
  EXPECT_FALSE(history.conflict(read_at(2, 1), {}));
  history.add(read_at(2, 1));
  EXPECT_TRUE(history.conflict(write_at(3, 1), past_with(1, 1)));
  auto past = past_with(1, 1);
  past.add(Moment{2, 1});
  EXPECT_FALSE(history.conflict(write_at(3, 1), past));
}

TEST(UseHistory, OfAStreamsReadsTheLastCounts) {
  UseHistory history;
  history.add(read_at(1, 1));
  history.add(read_at(1, 9));
  EXPECT_TRUE(history.conflict(write_at(2, 1), past_with(1, 8)));
  EXPECT_FALSE(history.conflict(write_at(2, 1), past_with(1, 9)));
}

TEST(UseHistory, IsOverWhenAllOfItIs) {
  UseHistory history;
  EXPECT_TRUE(history.is_over({}));
  history.add(write_at(0, 1));
  history.add(read_at(1, 1));
  EXPECT_FALSE(history.is_over(past_with(0, 1)));
  auto past = past_with(0, 1);
  past.add(Moment{1, 1});
  EXPECT_TRUE(history.is_over(past));
}

}  // namespace
}  // namespace muster::standin
