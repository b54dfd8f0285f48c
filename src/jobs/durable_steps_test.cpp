#include "jobs/durable_steps.h"

#include <gtest/gtest.h>

#include <future>

namespace muster {
namespace {

TEST(DurableSteps, TellsOfEachStepOnce) {
  DurableSteps steps([](const RunStep&) -> Status { return Done{}; });
  EXPECT_FALSE(steps.take());
  EXPECT_FALSE(steps.wait()) << "there is none to wait for";
  for (const std::uint64_t count : {3U, 5U}) {
    steps.begin({.record_count = count});
    const auto done = steps.wait();
    ASSERT_TRUE(done && *done);
    EXPECT_EQ((*done)->record_count, count);
    EXPECT_FALSE(steps.take());
  }
}

TEST(DurableSteps, TheCallerGoesOnWhileTheDiskIsSlow) {
  std::promise<void> disk;
  DurableSteps steps([is_done = disk.get_future().share()](const RunStep&) -> Status {
    is_done.wait();
    return Done{};
  });
  steps.begin({.record_count = 1});
  EXPECT_TRUE(steps.is_under_way());
  EXPECT_FALSE(steps.take());
  disk.set_value();
  EXPECT_TRUE(steps.wait());
  EXPECT_FALSE(steps.is_under_way());
}

TEST(DurableSteps, AFailureIsTheOutcome) {
  DurableSteps steps([](const RunStep&) -> Status {
    return Error{ErrorKind::ResourceExhausted, "the disk is full"};
  });
  steps.begin({});
  const auto done = steps.wait();
  ASSERT_TRUE(done);
  ASSERT_FALSE(*done);
  EXPECT_EQ(done->error().message, "the disk is full");
}

TEST(DurableSteps, AStepThatHasBegunIsDoneBeforeTheEnd) {
  int count = 0;
  {
    DurableSteps steps([&](const RunStep&) -> Status {
      ++count;
      return Done{};
    });
    steps.begin({});
  }
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace muster
