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

TEST(RecordWindow, ShowsWhatIsDoneBeforeItsTurn) {
  RecordWindow window(10, 1 << 20);
  for (const char* text : {"a", "b", "c", "d"}) window.push(record_of(text));
  window.find(0)->is_done = true;
  window.pop_front();
  window.find(2)->is_done = true;
  window.find(3)->is_done = true;
  std::string seen;
  const auto visit = [&](ItemKey key, const WindowRecord& record) -> Status {
    seen += std::to_string(key) + record.entry.text;
    if (key == 3) return Error{ErrorKind::ResourceExhausted, "full"};
    return Done{};
  };
  EXPECT_EQ(window.visit_done(visit).error().message, "full");
  EXPECT_EQ(seen, "2c3d");
  seen.clear();
  window.find(3)->is_done = false;
  EXPECT_TRUE(window.visit_done(visit));
  EXPECT_EQ(seen, "2c");
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
