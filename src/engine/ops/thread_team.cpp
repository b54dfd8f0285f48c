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
  items_.put(count, size(), call, work);
  if (sleeping_.load() > 0) items_.wake_all();
  while (items_.do_one(0)) {
  }
  if (const auto failure = items_.finish()) std::rethrow_exception(failure);
}

// The end is looked for behind the count, else one that comes between the two is slept through.
void ThreadTeam::help(std::size_t member) {
  for (;;) {
    const auto seen = items_.put_count();
    if (items_.has_ended()) return;
    while (items_.do_one(member)) {
    }
    await_more(seen);
  }
}

void ThreadTeam::await_more(std::uint32_t puts_seen) {
  const auto until = std::chrono::steady_clock::now() + kPollTime;
  while (std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < 64; ++i) {
      if (items_.put_count() != puts_seen) return;
      pause_briefly();
    }
  }
  sleeping_.fetch_add(1);
  items_.wait_for_more(puts_seen);
  sleeping_.fetch_sub(1);
}

}  // namespace muster::engine
