// A fork and join by two counters: items are claimed by taking one off `left_` and counted in
// `done_`. A helper that the system keeps off its core holds nobody up: the others claim its share.
// Work throws where memory is short; that must reach the caller, and not while others still work.

#include "engine/ops/thread_team.h"

#include <utility>

namespace muster::engine {
namespace {

// Left to the core's other hardware thread, if it has one.
void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What `left_` is when the team ends, so that a sleeper wakes.
constexpr std::uint32_t kEnd = 0xffffffffU;

}  // namespace

// Where a helper cannot be started, those before it must have ended before the exception goes on: a
// thread that is let go of while it runs ends the process.
ThreadTeam::ThreadTeam(std::size_t size, std::function<void(std::size_t)> on_start) {
  try {
    for (std::size_t member = 1; member < size; ++member) {
      helpers_.emplace_back([this, member, on_start] {
        if (on_start) on_start(member);
        help(member);
      });
    }
  } catch (...) {
    end_helpers();
    throw;
  }
}

ThreadTeam::~ThreadTeam() { end_helpers(); }

void ThreadTeam::end_helpers() {
  left_.store(kEnd);
  left_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

void ThreadTeam::start(std::size_t count, Call call, void* work) {
  count_ = count;
  call_ = call;
  work_ = work;
  done_.store(0, std::memory_order_relaxed);
  // Both sequentially consistent: either this sees the sleeper or the sleeper sees the work.
  left_.store(static_cast<std::uint32_t>(count));
  if (sleeping_.load() > 0) left_.notify_all();
  while (do_one(0)) {
  }
  while (done_.load(std::memory_order_acquire) != count) pause_briefly();
  if (failure_ == nullptr) return;
  has_failed_.clear();
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

bool ThreadTeam::do_one(std::size_t member) {
  auto left = left_.load(std::memory_order_acquire);
  do {
    if (left == 0 || left == kEnd) return false;
  } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel));
  // An item that throws is done as well: nobody would count it otherwise, and in a helper nobody
  // would catch it.
  try {
    call_(work_, count_ - left, member);
  } catch (...) {
    keep_failure();
  }
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void ThreadTeam::keep_failure() {
  if (!has_failed_.test_and_set()) failure_ = std::current_exception();
}

void ThreadTeam::help(std::size_t member) {
  while (await_work()) {
    while (do_one(member)) {
    }
  }
}

// False at the end of the team.
bool ThreadTeam::await_work() {
  const auto until = std::chrono::steady_clock::now() + kPollTime;
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      const auto left = left_.load(std::memory_order_acquire);
      if (left != 0) return left != kEnd;
      pause_briefly();
    }
    if (std::chrono::steady_clock::now() < until) continue;
    sleeping_.fetch_add(1);
    left_.wait(0);
    sleeping_.fetch_sub(1);
  }
}

}  // namespace muster::engine
