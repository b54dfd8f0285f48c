#include "net/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "net/event_loop_parts.h"

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TimePoint now() { return std::chrono::steady_clock::now(); }

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  void put() const { EXPECT_EQ(::write(write.get(), "x", 1), 1); }
  void take() const {
    char byte = 0;
    EXPECT_EQ(::read(read.get(), &byte, 1), 1);
  }
  UniqueFd read;
  UniqueFd write;
};

TEST(EventLoop, RunsWhatIsPostedInOrderFromThisAndOtherThreads) {
  EventLoop loop;
  std::string said;
  loop.post([&] { said += 'a'; });
  loop.post([&] {
    said += 'b';
    loop.post([&] {
      said += 'd';
      std::thread([&] { loop.post([&] { loop.stop(); }); }).join();
    });
  });
  loop.post([&] { said += 'c'; });
  loop.run();
  EXPECT_EQ(said, "abcd");
}

TEST(EventLoop, IsWokenByAnotherThreadWhileItWaits) {
  EventLoop loop;
  std::atomic<int> count = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) {
      loop.post([&] { ++count; });
    }
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  other.join();
  EXPECT_EQ(count, 1000);
}

TEST(EventLoop, LeavesTheRestForTheNextRunWhenItIsStopped) {
  EventLoop loop;
  std::string said;
  loop.post([&] {
    said += 'a';
    loop.stop();
  });
  loop.post([&] {
    said += 'b';
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(said, "a");
  loop.run();
  EXPECT_EQ(said, "ab");
  loop.stop();
  loop.run();  // ends at once
}

TEST(EventLoop, CallsAWatchAsLongAsSomethingIsThere) {
  EventLoop loop;
  const Pipe pipe;
  pipe.put();
  pipe.put();
  int calls = 0;
  const auto watch = loop.watch(pipe.read.get(), [&] {
    ++calls;
    if (calls == 2) pipe.take();  // the first call took nothing and is repeated
    if (calls == 3) {
      pipe.take();
      loop.post([&] { loop.stop(); });
    }
  });
  loop.run();
  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, TellsAHangUp) {
  EventLoop loop;
  Pipe pipe;
  pipe.write.reset();
  const auto watch = loop.watch(pipe.read.get(), [&] { loop.stop(); });
  loop.run();
}

TEST(EventLoop, WatchesAnEpollDescriptor) {
  EventLoop loop;
  const UniqueFd inner(::epoll_create1(EPOLL_CLOEXEC));
  const Pipe pipe;
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(inner.get(), EPOLL_CTL_ADD, pipe.read.get(), &event), 0);
  int calls = 0;
  const auto watch = loop.watch(inner.get(), [&] {
    if (++calls == 2) loop.stop();  // level-triggered through both
  });
  loop.post([&] { pipe.put(); });
  loop.run();
  EXPECT_EQ(calls, 2);
}

TEST(EventLoop, LetsAWatchEndItselfAndOthersThatAreReadyToo) {
  EventLoop loop;
  const std::array<Pipe, 2> pipes;
  std::array<std::unique_ptr<EventLoop::Watch>, 2> watches;
  int calls = 0;
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    pipes[i].put();
    const std::string held = "what the callback owns lives until it returns";
    watches[i] = loop.watch(pipes[i].read.get(), [&, held] {
      watches = {};
      ++calls;
      EXPECT_EQ(held, "what the callback owns lives until it returns");
      loop.post([&] { loop.stop(); });
    });
  }
  loop.run();
  EXPECT_EQ(calls, 1);
}

class EventLoopTimers : public testing::TestWithParam<EventLoop::Wait> {
 protected:
  static std::unique_ptr<EventLoop::Timer> timer(EventLoop& loop, std::function<void()> on_time) {
    return loop.timer(std::move(on_time), GetParam());
  }
};

TEST_P(EventLoopTimers, RingsTimersInTheOrderOfTheirTimes) {
  EventLoop loop;
  std::string said;
  const auto start = now();
  const auto late = timer(loop, [&] {
    said += 'c';
    loop.stop();
  });
  const auto early = timer(loop, [&] { said += 'a'; });
  const auto middle = timer(loop, [&] { said += 'b'; });
  late->set(start + milliseconds(3));
  middle->set(start + milliseconds(2));
  early->set(start + milliseconds(1));
  loop.run();
  EXPECT_EQ(said, "abc");
  EXPECT_GE(now() - start, milliseconds(3));
}

TEST_P(EventLoopTimers, RingsAtTheNewestTimeAndNotWhenCleared) {
  EventLoop loop;
  std::string said;
  const auto moved_nearer = timer(loop, [&] { said += 'n'; });
  const auto cleared = timer(loop, [&] { said += "never"; });
  auto destroyed = timer(loop, [&] { said += "never"; });
  const auto moved_away = timer(loop, [&] { said += "never"; });
  const auto past = timer(loop, [&] { said += 'p'; });
  const auto last = timer(loop, [&] { loop.stop(); });
  const auto start = now();
  moved_nearer->set(start + hours(1));
  moved_nearer->set(start + milliseconds(1));
  cleared->set(start);
  cleared->clear();
  destroyed->set(start);
  destroyed.reset();
  moved_away->set(start);
  moved_away->set(TimePoint::max());
  past->set(TimePoint());
  last->set(start + milliseconds(2));
  loop.run();
  EXPECT_EQ(said, "pn");
}

TEST_P(EventLoopTimers, LetsATimerSetOrDestroyItselfWhenItRings) {
  EventLoop loop;
  int rings = 0;
  std::unique_ptr<EventLoop::Timer> alarm;
  alarm = timer(loop, [&] {
    if (++rings < 3) {
      alarm->set(now());
    } else {
      alarm.reset();
      loop.stop();
    }
  });
  alarm->set(now());
  loop.run();
  EXPECT_EQ(rings, 3);
}

// After some rings a polling timer knows a lead, and keeps the loop awake for it.
TEST_P(EventLoopTimers, RingsOnceForEachTimeAndNeverAheadOfIt) {
  EventLoop loop;
  constexpr int kRings = 200;
  int rings = 0;
  int early = 0;
  TimePoint due{};
  std::unique_ptr<EventLoop::Timer> alarm;
  const auto set = [&] {
    due = now() + std::chrono::microseconds(300);
    alarm->set(due);
  };
  alarm = timer(loop, [&] {
    early += now() < due ? 1 : 0;
    if (++rings == kRings) return loop.stop();
    set();
  });
  const auto start = now();
  set();
  loop.run();
  EXPECT_EQ(rings, kRings);
  EXPECT_EQ(early, 0);
  EXPECT_GE(now() - start, kRings * std::chrono::microseconds(300));
  const bool polls = GetParam() == EventLoop::Wait::Polling;
  EXPECT_EQ(loop.parts().polls_until > TimePoint::min(), polls);
  EXPECT_GT(loop.parts().lead(), Duration(0));
}

TEST_P(EventLoopTimers, ReadsWhatIsReadyWhileItWaitsForATime) {
  EventLoop loop;
  const Pipe pipe;
  int reads = 0;
  std::unique_ptr<EventLoop::Timer> next;
  const auto watch = loop.watch(pipe.read.get(), [&] {
    pipe.take();
    if (++reads == 100) return loop.stop();
    next->set(now() + std::chrono::microseconds(100));
  });
  next = timer(loop, [&] { pipe.put(); });
  pipe.put();
  loop.run();
  EXPECT_EQ(reads, 100);
}

INSTANTIATE_TEST_SUITE_P(BothWays, EventLoopTimers,
                         testing::Values(EventLoop::Wait::Asleep, EventLoop::Wait::Polling));

}  // namespace
}  // namespace muster
