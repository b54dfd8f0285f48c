#include "serving/step_thread.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace muster {
namespace {

// The thread starts with the first task, so that all are there before the first step of any.
TEST(StepThread, TakesAStepOfEachTaskInTurn) {
  EventLoop loop;
  StepThread thread(loop);
  std::string order;  // the thread's until the last task is done
  int left = 3;
  std::mutex gate;
  std::unique_lock closed(gate);
  const auto count_down = [&] {
    if (--left == 0) loop.stop();
  };
  thread.run(
      [&] {
        const std::lock_guard pass(gate);  // until the others are there
        order += 'g';
        return true;
      },
      count_down);
  for (const auto& [name, step_count] : {std::pair('a', 3), std::pair('b', 1)}) {
    thread.run(
        [&order, name = name, to_go = step_count]() mutable {
          order += name;
          return --to_go == 0;
        },
        count_down);
  }
  EXPECT_EQ(thread.task_count(), 3U);
  closed.unlock();
  loop.run();
  EXPECT_EQ(order, "gabaa");
  EXPECT_EQ(thread.task_count(), 0U);
}

TEST(StepThread, ACancelledTaskIsNotDoneAndWhatItHoldsGoes) {
  EventLoop loop;
  StepThread thread(loop);
  std::mutex gate;
  std::unique_lock closed(gate);
  thread.run(
      [&] {
        const std::lock_guard pass(gate);
        return true;
      },
      [] {});
  auto held = std::make_shared<int>(7);
  const std::weak_ptr<int> is_held = held;
  bool is_stepped = false;
  const auto id = thread.run(
      [&is_stepped, held = std::move(held)] {
        is_stepped = true;
        return true;
      },
      [] { FAIL() << "it was cancelled"; });
  thread.cancel(id);
  EXPECT_TRUE(is_held.expired()) << "though another task runs";
  thread.cancel(id);
  thread.run([] { return true; }, [&] { loop.stop(); });
  closed.unlock();
  loop.run();
  EXPECT_FALSE(is_stepped);
}

TEST(StepThread, EndsWithTasksThatAreLeft) {
  EventLoop loop;
  std::optional<StepThread> thread(std::in_place, loop);
  std::atomic<bool> has_begun = false;
  thread->run(
      [&] {
        has_begun = true;
        return false;
      },
      [] { FAIL() << "it never ends"; });
  while (!has_begun) std::this_thread::yield();
  thread.reset();
  loop.stop();
  loop.run();
}

}  // namespace
}  // namespace muster
