#include "jobs/record_window.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

RecordPtr record_of(std::string text) {
  auto record = std::make_unique<WindowRecord>();
  record->entry.text = std::move(text);
  return record;
}

TEST(RecordWindow, LetsRecordsLeaveInInputOrder) {
  RecordWindow window(10, 10, 1 << 20);
  const auto a = window.push(record_of("a"));
  const auto b = window.push(record_of("b"));
  window.find(b)->is_done = true;
  EXPECT_EQ(window.front_if_done(), nullptr);  // a comes first
  window.find(a)->is_done = true;
  ASSERT_NE(window.front_if_done(), nullptr);
  const auto* first = window.find(a);
  EXPECT_EQ(window.front_if_done(), first);
  const auto left = window.pop_front();
  EXPECT_EQ(left.get(), first) << "it is moved nowhere";
  EXPECT_EQ(left->entry.text, "a");
  EXPECT_EQ(window.find(a), nullptr);
  EXPECT_EQ(window.front_if_done()->entry.text, "b");
  window.pop_front();
  EXPECT_TRUE(window.is_empty());
}

TEST(RecordWindow, ShowsWhatIsDoneBeforeItsTurn) {
  RecordWindow window(10, 10, 1 << 20);
  for (const char* text : {"a", "b", "c", "d"}) window.push(record_of(text));
  window.find(0)->is_done = true;
  window.pop_front();
  window.find(2)->is_done = true;
  window.find(3)->is_done = true;
  std::string seen;
  const auto visit = [&](const WindowRecord& record) -> Status {
    seen += std::to_string(record.key) + record.entry.text;
    if (record.key == 3) return Error{ErrorKind::ResourceExhausted, "full"};
    return Done{};
  };
  EXPECT_EQ(window.visit_done(false, visit).error().message, "full");
  EXPECT_EQ(seen, "2c3d");
  seen.clear();
  window.find(1)->is_done = true;
  EXPECT_TRUE(window.visit_done(true, visit)) << "none of them waits for an earlier one";
  EXPECT_EQ(seen, "");
  window.find(2)->is_done = false;
  EXPECT_EQ(window.visit_done(true, visit).error().message, "full");
  EXPECT_EQ(seen, "3d");
  window.find(1)->is_done = false;
  window.find(2)->is_done = true;
  seen.clear();
  window.find(3)->is_done = false;
  EXPECT_TRUE(window.visit_done(false, visit));
  EXPECT_EQ(seen, "2c");
}

TEST(RecordWindow, IsBoundedByRecords) {
  RecordWindow window(2, 2, 1 << 20);
  window.push(record_of("a"));
  EXPECT_TRUE(window.has_room());
  window.push(record_of("b"));
  EXPECT_FALSE(window.has_room());
  window.pop_front();
  EXPECT_TRUE(window.has_room());
}

TEST(RecordWindow, CountsTheIdsOfATextOnceTheyAreKnown) {
  RecordWindow window(100, 100, 10'000);
  const auto key = window.push(record_of("a"));
  window.note_tokens(key, 2'000);  // 8,000 bytes
  EXPECT_EQ(window.find(key)->entry.token_count, 2'000U);
  EXPECT_TRUE(window.has_room());
  window.note_tokens(key, 3'000);
  EXPECT_FALSE(window.has_room());
  window.pop_front();
  EXPECT_TRUE(window.has_room());
}

TEST(RecordWindow, GrowsAndShrinksWithThePaceOfWhatLeaves) {
  RecordWindow window(2, 8, 1 << 20);
  const auto room = [&] {
    std::size_t count = 0;
    for (; window.has_room(); ++count) window.push(record_of("a"));
    return count;
  };
  const auto leave = [&](int count) {
    for (int i = 0; i < count; ++i) window.pop_front();
  };
  EXPECT_EQ(room(), 2U);
  leave(2);
  window.fit_to_pace(std::chrono::milliseconds(200));  // 10 a second: 5 in half of one
  EXPECT_EQ(room(), 5U);
  leave(5);
  window.fit_to_pace(std::chrono::milliseconds(100));  // 25, and 8 are the most
  EXPECT_EQ(room(), 8U);
  leave(8);
  window.fit_to_pace(std::chrono::seconds(8));  // none in half a second
  EXPECT_EQ(room(), 2U);
}

TEST(RecordWindow, IsBoundedByBytesAndLetsALargeRecordInAlone) {
  RecordWindow window(100, 100, 10'000);
  EXPECT_TRUE(window.has_room());
  window.push(record_of(std::string(20'000, 'x')));
  EXPECT_FALSE(window.has_room());
  window.pop_front();
  EXPECT_TRUE(window.has_room());
}

}  // namespace
}  // namespace muster
