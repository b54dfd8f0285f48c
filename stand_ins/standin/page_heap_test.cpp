#include "standin/page_heap.h"

#include <gtest/gtest.h>

namespace muster::standin {
namespace {

constexpr std::size_t kPages = kPageSize;

TEST(PageHeap, BlocksAreWholePagesWithOneBetweenThem) {
  PageHeap heap(8 * kPages);
  EXPECT_EQ(heap.take(1), 0U);
  EXPECT_EQ(heap.take(kPages + 1), 2 * kPages);
  EXPECT_EQ(heap.take(kPages), 5 * kPages);
}

TEST(PageHeap, ABlockNeedsItsPageBehindItToo) {
  PageHeap heap(2 * kPages);
  EXPECT_FALSE(heap.take(2 * kPages));
  EXPECT_EQ(heap.take(kPages), 0U);
}

TEST(PageHeap, NeighboursThatAreGivenBackBecomeOneGap) {
  PageHeap heap(6 * kPages);
  for (const auto begin : {0U, 2U, 4U}) ASSERT_EQ(heap.take(kPages), begin * kPages);
  EXPECT_FALSE(heap.take(1));
  heap.give_back(0);
  heap.give_back(4 * kPages);
  EXPECT_FALSE(heap.take(2 * kPages));
  heap.give_back(2 * kPages);
  EXPECT_EQ(heap.take(5 * kPages), 0U);
}

TEST(PageHeap, AnAddressLeadsToItsBlock) {
  PageHeap heap(8 * kPages);
  ASSERT_EQ(heap.take(1), 0U);
  ASSERT_EQ(heap.take(2 * kPages), 2 * kPages);
  const auto block = heap.block_at(3 * kPages + 5);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->begin, 2 * kPages);
  EXPECT_EQ(block->size, 2 * kPages);
  EXPECT_FALSE(heap.block_at(kPages)) << "between two blocks";
  EXPECT_FALSE(heap.block_at(7 * kPages));
}

}  // namespace
}  // namespace muster::standin
