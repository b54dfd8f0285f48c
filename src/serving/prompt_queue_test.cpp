#include "serving/prompt_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace muster {
namespace {

constexpr FlowId kA = 1;
constexpr FlowId kB = 2;

class PromptQueueTest : public testing::Test {
 protected:
  void push(FlowId flow, std::uint64_t bytes, const std::string& name) {
    ASSERT_TRUE(queue_.push(flow, bytes, [this, name] { read_ += name + " "; }));
  }

  // Reads the next `count`, and tells which they were.
  std::string read(int count) {
    read_.clear();
    for (int i = 0; i < count; ++i) (*queue_.take())();
    return read_;
  }

  PromptQueue queue_{4};
  std::string read_;
};

TEST_F(PromptQueueTest, AKeysOwnKeepTheirOrder) {
  push(kA, 1000, "long");
  push(kA, 1, "short");
  push(kA, 1, "last");
  EXPECT_EQ(read(3), "long short last ");
}

TEST_F(PromptQueueTest, AnotherKeyWaitsForNoMoreThanTheOneThatIsRead) {
  for (const auto* name : {"A1", "A2", "A3"}) push(kA, 8 << 20, name);
  EXPECT_EQ(read(1), "A1 ");
  push(kB, 10, "B1");
  EXPECT_EQ(read(1), "B1 ");
  // B has had 74 bytes, and A's next comes behind eight million: B is before it once more.
  push(kB, 10, "B2");
  EXPECT_EQ(read(3), "B2 A2 A3 ");
}

TEST_F(PromptQueueTest, EmptyPromptsAreNotFree) {
  push(kA, 0, "A1");
  push(kA, 0, "A2");
  push(kB, 0, "B1");
  EXPECT_EQ(read(3), "A1 B1 A2 ");
}

TEST_F(PromptQueueTest, IsBoundedAndEndsWhenItIsClosed) {
  EXPECT_TRUE(queue_.has_room_for(4));
  EXPECT_FALSE(queue_.has_room_for(5));
  for (const auto* name : {"1", "2", "3", "4"}) push(kA, 1, name);
  EXPECT_EQ(queue_.push(kB, 1, [] {}).error().kind, ErrorKind::ResourceExhausted);
  EXPECT_FALSE(queue_.has_room_for(1));
  EXPECT_EQ(read(1), "1 ");
  EXPECT_TRUE(queue_.has_room_for(1));
  EXPECT_FALSE(queue_.has_room_for(2));
  push(kB, 1, "5");
  queue_.close();
  EXPECT_FALSE(queue_.take()) << "what is left is dropped";
  EXPECT_EQ(queue_.push(kB, 1, [] {}).error().kind, ErrorKind::Cancelled);
}

TEST_F(PromptQueueTest, WhoeverWaitsIsWokenByAPromptAndByTheEnd) {
  std::thread reader([this] {
    while (const auto job = queue_.take()) (*job)();
  });
  push(kA, 1, "a");
  // Only one that was read makes room for a fifth.
  for (int i = 0; i < 4;) i += queue_.push(kA, 1, [] {}) ? 1 : 0;
  queue_.close();
  reader.join();
  EXPECT_EQ(read_, "a ");
}

}  // namespace
}  // namespace muster
