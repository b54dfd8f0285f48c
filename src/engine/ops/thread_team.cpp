// A fork and join: the caller puts the items, and it and its helpers claim them one by one. The
// helpers live as long as the team, since starting a thread takes longer than many a step.

#include "engine/ops/thread_team.h"

#include <exception>

namespace muster::engine {

// Where a helper cannot be started, those before it must have ended before the exception goes on: a
// thread that is let go of while it runs ends the process.
ThreadTeam::ThreadTeam(std::size_t size, std::function<void(std::size_t)> on_start) : items_(size) {
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
  items_.end();
  for (auto& helper : helpers_) helper.join();
}

void ThreadTeam::start(std::size_t count, ClaimedItems::Call call, void* work) {
  items_.put(count, call, work);
  if (sleeping_.load() > 0) items_.wake_all();
  while (items_.do_one(0)) {
  }
  if (const auto failure = items_.finish()) std::rethrow_exception(failure);
}

void ThreadTeam::help(std::size_t member) {
  while (await_work()) {
    while (items_.do_one(member)) {
    }
  }
}

// False at the end of the team.
bool ThreadTeam::await_work() {
  const auto until = std::chrono::steady_clock::now() + kPollTime;
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (items_.has_some()) return !items_.has_ended();
      pause_briefly();
    }
    if (std::chrono::steady_clock::now() < until) continue;
    sleeping_.fetch_add(1);
    items_.wait_for_some();
    sleeping_.fetch_sub(1);
  }
}

}  // namespace muster::engine
