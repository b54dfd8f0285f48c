#include "server/loop_tasks.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(LoopTasks, TakeTurnsAndLetOthersInBetween) {
  EventLoop loop;
  LoopTasks tasks(loop);
  std::string order;
  int left_of_a = 2;
  tasks.add([&] {
    order += 'a';
    return --left_of_a > 0;
  });
  tasks.add([&] {
    order += 'b';
    loop.post([&] { order += 'x'; });  // somebody else's, such as a request that has come
    tasks.add([&] {
      order += 'c';
      loop.stop();
      return false;
    });
    return false;
  });
  loop.run();
  EXPECT_EQ(order, "abxac");
}

TEST(LoopTasks, WhatIsLeftIsDroppedWithThem) {
  EventLoop loop;
  bool was_run = false;
  {
    LoopTasks tasks(loop);
    tasks.add([&] {
      was_run = true;
      return false;
    });
  }
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(was_run);
}

}  // namespace
}  // namespace muster
