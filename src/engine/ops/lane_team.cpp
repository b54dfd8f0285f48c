// Idle lanes wait for two things at once: a batch, which they are called for, and items of another
// lane. Each sleeps on a word of its own. A lane first says that it is asleep and then looks for
// both once more; who brings one of them looks for sleepers afterwards. So nothing is slept
// through. The thread that wakes a lane first marks it as woken, so that two calls wake two lanes.

#include "engine/ops/lane_team.h"

#include <algorithm>
#include <exception>

namespace muster::engine {
namespace {

using SteadyTime = std::chrono::steady_clock;

constexpr std::uint32_t kAwake = 0;
constexpr std::uint32_t kAsleep = 1;
constexpr std::uint32_t kWoken = 2;

constexpr int kPauses = 16;  // between two looks at the clock: less than a microsecond

}  // namespace

void LaneTeam::call() {
  calls_.fetch_add(1);
  if (wake(1) > 0) return;
  // Another thread may have chosen a lane and lost its core before it has told the lane.
  for (auto& sleeper : sleepers_) {
    if (sleeper.state.load() == kWoken) sleeper.state.notify_one();
  }
}

void LaneTeam::call_all() {
  calls_.fetch_add(1);
  wake(size_);
}

void LaneTeam::help(std::size_t member, std::uint32_t calls_seen) {
  const bool is_any_shared = limits_.pass != kMoreThanAnyWork;
  idle_.fetch_add(1);
  auto until = SteadyTime::now() + kPollTime;
  while (calls_.load() == calls_seen) {
    if (items_.do_one(member)) {
      until = SteadyTime::now() + kPollTime;
    } else if (is_any_shared && idle_.load() < size_ && SteadyTime::now() < until) {
      for (int i = 0; i < kPauses; ++i) pause_briefly();
    } else {
      sleep(member, calls_seen);
      until = SteadyTime::now() + kPollTime;
    }
  }
  idle_.fetch_sub(1);
}

void LaneTeam::sleep(std::size_t member, std::uint32_t calls_seen) {
  auto& own = sleepers_[member];
  sleeping_.fetch_add(1);
  own.state.store(kAsleep);
  if (calls_.load() == calls_seen && !items_.has_some()) own.state.wait(kAsleep);
  if (own.state.exchange(kAwake) == kAsleep) sleeping_.fetch_sub(1);
}

// False: nobody is idle, or another lane shares out.
bool LaneTeam::try_share(const Sharer& sharer, std::size_t count, ClaimedItems::Call item,
                         void* work, std::chrono::nanoseconds& helped) {
  if (idle_count() == 0 || is_shared_.test_and_set(std::memory_order_acquire)) return false;
  sharer_ = sharer.member;
  item_ = item;
  work_ = work;
  helped_ns_.store(0, std::memory_order_relaxed);
  const auto lanes = std::min({sharer.lanes_most, 1 + idle_count(), count});
  items_.put(count, lanes, &LaneTeam::do_item, this);
  wake_helpers(lanes - 1);
  while (items_.do_one(sharer.member)) {
  }
  const auto failure = items_.finish();
  helped += std::chrono::nanoseconds(helped_ns_.load(std::memory_order_relaxed));
  is_shared_.clear(std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
  return true;
}

// The time of an item is booked before the item counts as done, so that its owner finds it.
void LaneTeam::do_item(void* team, std::size_t index, std::size_t member) {
  auto& self = *static_cast<LaneTeam*>(team);
  if (member == self.sharer_) return self.item_(self.work_, index, member);
  const auto begin = SteadyTime::now();
  self.item_(self.work_, index, member);
  const std::chrono::nanoseconds took = SteadyTime::now() - begin;
  self.helped_ns_.fetch_add(took.count(), std::memory_order_relaxed);
}

// Who is awake comes by itself.
void LaneTeam::wake_helpers(std::size_t helpers_most) {
  const auto sleeping = sleeping_.load();
  if (sleeping == 0) return;
  const auto idle = idle_count();
  const auto awake = idle > sleeping ? idle - sleeping : 0;
  if (awake < helpers_most) wake(helpers_most - awake);
}

// At most so many; how many it has woken.
std::size_t LaneTeam::wake(std::size_t count) {
  std::size_t woken = 0;
  for (auto& sleeper : sleepers_) {
    if (woken == count) break;
    auto state = kAsleep;
    if (sleeper.state.load() != kAsleep || !sleeper.state.compare_exchange_strong(state, kWoken)) {
      continue;
    }
    sleeping_.fetch_sub(1);
    sleeper.state.notify_one();
    ++woken;
  }
  return woken;
}

void LaneSeat::begin_pass(std::uint64_t work) {
  if (team_ == nullptr) return;
  const auto of_a_lane = std::max<std::uint64_t>(1, team_->limits().pass);
  lanes_most_ = std::min<std::uint64_t>(team_->size(), work / of_a_lane);
}

std::size_t LaneSeat::lanes_now(std::uint64_t work) const {
  if (lanes_most_ < 2 || work < team_->limits().share) return 1;
  return std::min(lanes_most_, 1 + team_->idle_count());
}

}  // namespace muster::engine
