#include "base/stop_signal.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <thread>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

bool is_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

TEST(StopSignal, WaitsAsLongWhileNobodyRaisesIt) {
  StopSignal signal;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(signal.wait(milliseconds(2)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(2));
  EXPECT_TRUE(signal.wait_until(begin)) << "that is past";
  EXPECT_FALSE(is_readable(signal.fd()));
}

TEST(StopSignal, OnceRaisedItEndsEveryWait) {
  StopSignal signal;
  std::array<bool, 3> was_whole{true, true, true};
  {
    std::array<std::jthread, 3> threads;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      threads[i] = std::jthread([&, i] { was_whole[i] = signal.wait(minutes(5)); });
    }
    signal.raise();
  }
  EXPECT_EQ(was_whole, (std::array<bool, 3>{}));
  EXPECT_FALSE(signal.wait(minutes(5))) << "and those that come later";
  EXPECT_TRUE(is_readable(signal.fd()));
}

}  // namespace
}  // namespace muster
