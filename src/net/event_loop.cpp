// epoll with three additions: an eventfd for what other threads post, a timerfd for the earliest
// timer, and generations against stale events. Slots are reused, and a wake-up may still tell of
// a descriptor that was removed by an earlier callback of it; the generation in the event's key
// no longer fits then, and the event is dropped. Timers are an ordered map, so setting one costs
// O(log n) and no system call unless it becomes the earliest.

#include "net/event_loop.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/thread_slice.h"
#include "net/event_loop_parts.h"

namespace muster {
namespace {

constexpr int kEventsMost = 256;  // of one wake-up; the rest is told by the next
constexpr std::uint64_t kWakeKey = ~0ULL;
constexpr std::uint64_t kAlarmKey = ~0ULL - 1;
constexpr int kSlotBits = 32;
constexpr Duration kLeadMost = std::chrono::microseconds(200);
constexpr int kLeadLags = 2;    // a lead of twice the mean lag covers nearly all wake-ups
constexpr int kLagMemory = 16;  // alarms

void listen_to(int epoll, int fd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  MUSTER_CHECK(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

void drain_counter(int fd) {
  std::uint64_t count = 0;
  // It may have been read already: nothing to do then.
  [[maybe_unused]] const auto size = ::read(fd, &count, sizeof count);
}

}  // namespace

EventLoop::Parts::Parts()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      alarm_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  MUSTER_CHECK(epoll_.is_open() && wake_event_.is_open() && alarm_.is_open());
  listen_to(epoll_.get(), wake_event_.get(), kWakeKey);
  listen_to(epoll_.get(), alarm_.get(), kAlarmKey);
}

std::uint64_t EventLoop::Parts::key_of(std::uint32_t slot) const {
  return std::uint64_t{slots_[slot].generation} << kSlotBits | slot;
}

EventLoop::Parts::Handle EventLoop::Parts::add(int fd, std::uint32_t events, ReadySink& sink) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const auto slot = free_slots_.back();
  free_slots_.pop_back();
  slots_[slot].sink = &sink;
  epoll_event event{};
  event.events = events;
  event.data.u64 = key_of(slot);
  MUSTER_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  return {fd, slot};
}

void EventLoop::Parts::change(const Handle& handle, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key_of(handle.slot);
  MUSTER_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, handle.fd, &event) == 0);
}

void EventLoop::Parts::remove(const Handle& handle) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, handle.fd, nullptr);
  auto& slot = slots_[handle.slot];
  slot.sink = nullptr;
  ++slot.generation;  // what this wake-up still has to tell of it is void
  free_slots_.push_back(handle.slot);
}

void EventLoop::Parts::wake() {
  const std::uint64_t one = 1;
  // A full counter wakes as well.
  [[maybe_unused]] const auto size = ::write(wake_event_.get(), &one, sizeof one);
}

void EventLoop::Parts::post(std::function<void()> task) {
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    is_first = posted_.empty();
    posted_.push_back(std::move(task));
  }
  if (is_first && !is_on_loop()) wake();
}

void EventLoop::Parts::stop() {
  is_stopped_ = true;
  if (!is_on_loop()) wake();
}

bool EventLoop::Parts::has_tasks() {
  if (!running_.empty()) return true;
  const MutexLock lock(mutex_);
  return !posted_.empty();
}

// An alarm_ that rings too early is cheaper than setting it anew for each change of the earliest.
void EventLoop::Parts::arm() {
  if (timers.empty() || timers.begin()->first == TimePoint::max()) return;
  const auto at = timers.begin()->first;
  if (armed_at_ && *armed_at_ <= at) return;
  armed_at_ = at;
  const auto since_boot = std::max(at.time_since_epoch(), Duration(1));  // 0 would disarm it
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  const itimerspec time{{0, 0}, {whole.count(), (since_boot - whole).count()}};
  MUSTER_CHECK(::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &time, nullptr) == 0);
}

void EventLoop::Parts::run() {
  loop_thread_ = std::this_thread::get_id();
  // Else whoever comes while all cores compute waits for the next tick of the scheduler, up to 4
  // ms.
  ask_for_short_slices();
  while (!is_stopped_) {
    run_tasks();
    if (is_stopped_) break;
    run_ready();
  }
  is_stopped_ = false;
  loop_thread_ = std::thread::id();
}

void EventLoop::Parts::run_tasks() {
  {
    const MutexLock lock(mutex_);
    if (running_.empty()) running_.swap(posted_);  // what is posted meanwhile waits for its turn
  }
  while (!running_.empty() && !is_stopped_) {
    const auto task = std::move(running_.front());
    running_.pop_front();
    task();
  }
}

void EventLoop::Parts::run_timers() {
  const auto now = std::chrono::steady_clock::now();
  // Bounded, so that one that sets itself to a time past lets others have their turn.
  for (auto left = timers.size(); left > 0; --left) {
    if (timers.empty() || timers.begin()->first > now || is_stopped_) return;
    timers.begin()->second->on_time();  // which takes itself out of the map
  }
}

// How late an alarm rang is known only where the loop slept until then.
void EventLoop::Parts::on_alarm(bool slept) {
  drain_counter(alarm_.get());
  if (slept && armed_at_) {
    const auto lag = std::min(std::max(woke_at - *armed_at_, Duration(0)), kLeadMost);
    alarm_lag_ += (lag - alarm_lag_) / kLagMemory;
  }
  armed_at_.reset();
  run_timers();
}

Duration EventLoop::Parts::lead() const { return std::min(kLeadLags * alarm_lag_, kLeadMost); }

void EventLoop::Parts::run_ready() {
  const auto now = std::chrono::steady_clock::now();
  const bool is_due = !timers.empty() && timers.begin()->first <= now;
  const bool polls = is_due || (!timers.empty() && now < polls_until);
  if (!polls) arm();
  const bool sleeps = !polls && !has_tasks();
  std::array<epoll_event, kEventsMost> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsMost, sleeps ? -1 : 0);
  MUSTER_CHECK(count >= 0 || errno == EINTR);
  woke_at = std::chrono::steady_clock::now();
  if (polls) {
    // Whoever waits for this processor has it; among them is the peer whose answer is waited for.
    if (count == 0 && !is_due) ::sched_yield();
    run_timers();
  }
  // What a stop leaves untold here is told again: readiness is level-triggered.
  for (int i = 0; i < count && !is_stopped_; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeKey) {
      drain_counter(wake_event_.get());
    } else if (event.data.u64 == kAlarmKey) {
      on_alarm(sleeps && armed_at_ > now);
    } else {
      const auto slot = static_cast<std::uint32_t>(event.data.u64);
      if (slots_[slot].sink != nullptr && key_of(slot) == event.data.u64) {
        slots_[slot].sink->on_ready(event.events);
      }
    }
  }
}

namespace {

class DescriptorWatch final : public EventLoop::Watch, public ReadySink {
 public:
  DescriptorWatch(EventLoop::Parts& parts, int fd, std::function<void()> on_readable)
      : parts_(parts),
        on_readable_(std::make_shared<std::function<void()>>(std::move(on_readable))),
        handle_(parts.add(fd, EPOLLIN, *this)) {}
  ~DescriptorWatch() override { parts_.remove(handle_); }

  void on_ready(std::uint32_t /*events*/) override {
    const auto held = on_readable_;  // this watch may be destroyed by what is called
    (*held)();
  }

 private:
  EventLoop::Parts& parts_;
  const std::shared_ptr<std::function<void()>> on_readable_;
  const EventLoop::Parts::Handle handle_;
};

// One that polls comes twice: a lead before its time to keep the loop awake, and at its time.
class LoopTimer final : public EventLoop::Timer, public TimeSink {
 public:
  LoopTimer(EventLoop::Parts& parts, std::function<void()> on_time, EventLoop::Wait wait)
      : parts_(parts),
        call_(std::make_shared<std::function<void()>>(std::move(on_time))),
        wait_(wait) {}
  ~LoopTimer() override { clear(); }

  void set(TimePoint at) override {
    clear();
    at_ = at;
    const bool polls = wait_ == EventLoop::Wait::Polling;
    place_ = parts_.timers.emplace(polls ? at - parts_.lead() : at, this);
  }

  void on_time() override {
    const bool is_ahead = (*place_)->first < at_;
    clear();
    if (is_ahead) {
      parts_.polls_until = std::max(parts_.polls_until, at_);
      place_ = parts_.timers.emplace(at_, this);  // also when late: others may be due before it
      return;
    }
    const auto held = call_;  // this timer may be destroyed by what is called
    (*held)();
  }

  void clear() override {
    if (place_) parts_.timers.erase(*place_);
    place_.reset();
  }

 private:
  EventLoop::Parts& parts_;
  const std::shared_ptr<std::function<void()>> call_;
  const EventLoop::Wait wait_;
  TimePoint at_{};
  std::optional<EventLoop::Parts::Timers::iterator> place_;
};

}  // namespace

EventLoop::EventLoop() : parts_(std::make_unique<Parts>()) {}
EventLoop::~EventLoop() = default;

void EventLoop::run() { parts_->run(); }
void EventLoop::stop() { parts_->stop(); }
void EventLoop::post(std::function<void()> task) { parts_->post(std::move(task)); }

std::unique_ptr<EventLoop::Watch> EventLoop::watch(int fd, std::function<void()> on_readable) {
  return std::make_unique<DescriptorWatch>(*parts_, fd, std::move(on_readable));
}

std::unique_ptr<EventLoop::Timer> EventLoop::timer(std::function<void()> on_time, Wait wait) {
  return std::make_unique<LoopTimer>(*parts_, std::move(on_time), wait);
}

}  // namespace muster
