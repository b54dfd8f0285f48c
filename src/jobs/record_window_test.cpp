#include "jobs/record_window.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

WindowRecord record_of(std::string text) {
  WindowRecord record;
  record.entry.text = std::move(text);
  return record;
}

TEST(RecordWindow, LetsRecordsLeaveInInputOrder) {
  RecordWindow window(10, 1 << 20);
  const auto a = window.push(record_of("a"));
  const auto b = window.push(record_of("b"));
  window.find(b)->is_done = true;
  EXPECT_EQ(window.front_if_done(), nullptr);  // a comes first
  window.find(a)->is_done = true;
  ASSERT_NE(window.front_if_done(), nullptr);
  EXPECT_EQ(window.front_if_done()->entry.text, "a");
  window.pop_front();
  EXPECT_EQ(window.find(a), nullptr);
  EXPECT_EQ(window.front_if_done()->entry.text, "b");
  window.pop_front();
  EXPECT_TRUE(window.is_empty());
}

TEST(RecordWindow, IsBoundedByRecords) {
  RecordWindow window(2, 1 << 20);
  window.push(record_of("a"));
  EXPECT_TRUE(window.has_room());
  window.push(record_of("b"));
  EXPECT_FALSE(window.has_room());
  window.pop_front();
  EXPECT_TRUE(window.has_room());
}

TEST(RecordWindow, IsBoundedByBytesAndLetsALargeRecordInAlone) {
  RecordWindow window(100, 10'000);
  EXPECT_TRUE(window.has_room());
  window.push(record_of(std::string(20'000, 'x')));
  EXPECT_FALSE(window.has_room());
  window.pop_front();
  EXPECT_TRUE(window.has_room());
}

}  // namespace
}  // namespace muster
