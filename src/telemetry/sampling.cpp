// One thread visits all devices of a tick; a watchdog's timer is pushed on by each round that
// ends in time. When a visit takes too long, the stuck thread keeps its device and a new thread
// takes over the others within the same tick. So the normal case costs one wake-up a tick, and a
// hanging driver costs one thread.

#include "telemetry/sampling.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace muster {
namespace {

// Below this a thread that merely was not scheduled would be taken for one that hangs.
constexpr Duration kStuckLeast = std::chrono::milliseconds(20);
// How long a visit waits for a look at the energy counter, or for a visit beside the rounds: calls
// of a driver that answers.
constexpr Duration kInUseWait = std::chrono::milliseconds(5);

TierSet only(Tier tier) { return TierSet().set(static_cast<std::size_t>(tier)); }

bool has(const TierSet& tiers, Tier tier) { return tiers.test(static_cast<std::size_t>(tier)); }

}  // namespace

Sampling::Sampling(std::vector<DeviceSampler*> samplers,
                   const std::array<Duration, kTierCount>& periods, CallPage& page,
                   const Clock& clock, SampleSink& sink)
    : plan_(periods),
      clock_(clock),
      begin_(clock.now()),
      stuck_after_(std::max(plan_.period() / 4, kStuckLeast)),
      sink_(sink),
      alarm_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)),
      edges_(clock) {
  MUSTER_CHECK(alarm_.is_open());
  auto poller = std::make_unique<Poller>();
  for (auto* sampler : samplers) {
    const auto index = static_cast<std::uint32_t>(devices_.size());
    auto& device = *devices_.emplace_back(std::make_unique<Watched>());
    device.sampler = sampler;
    device.watch = std::make_unique<CallCosts>(page, index);
    if (sampler == nullptr) continue;
    device.is_cpu = sampler->identity().device.kind == DeviceKind::Cpu;
    poller->devices.push_back(index);
  }
  poller->round.assign(poller->devices.rbegin(), poller->devices.rend());
  const std::lock_guard lock(mutex_);
  shared_ = poller.get();
  add_poller(std::move(poller));
  watchdog_ = std::jthread([this] { watch_over(); });
}

Sampling::~Sampling() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  stop_.raise();
  set_alarm(clock_.now());
  watchdog_.join();  // from here on no poller is added
  pollers_.clear();
}

void Sampling::add_poller(std::unique_ptr<Poller> poller) {
  auto& added = *pollers_.emplace_back(std::move(poller));
  added.thread = std::jthread([this, &added] { run(added); });
}

void Sampling::run(Poller& self) {
  std::unique_lock lock(mutex_);
  expect_round(self, std::max(tick_time(self.tick), clock_.now()));
  for (;;) {
    const auto next = tick_time(self.tick);
    lock.unlock();
    const bool is_due = stop_.wait_until(next);
    lock.lock();
    if (!is_due) break;
    visit_round(self, lock);
    if (self.is_alone && rejoin(self)) break;
    const auto late = (clock_.now() - tick_time(self.tick)) / plan_.period();
    self.tick += static_cast<std::uint64_t>(std::max<std::int64_t>(late, 0));
    count_missed(self, self.tick);
    self.counted_tick = ++self.tick;
    self.round.assign(self.devices.rbegin(), self.devices.rend());
    expect_round(self, tick_time(self.tick));
  }
  self.has_ended = true;
}

void Sampling::visit_round(Poller& self, std::unique_lock<std::mutex>& lock) {
  while (!self.round.empty() && !is_stopping_) {
    const auto device = self.round.back();
    self.round.pop_back();
    self.is_visiting = true;
    self.visiting = device;
    self.visit_since = clock_.now();
    lock.unlock();
    DeviceSample sample;
    // Held until the sample is given away: that of a visit beside the rounds comes after it.
    std::unique_lock<DeviceLock> use;
    const bool was_visited = visit(device, self, sample, use);
    const auto took = clock_.now() - self.visit_since;
    if (was_visited) {
      const MutexLock taking(sink_mutex_);
      sink_.take(sample);
    }
    if (use) use.unlock();
    lock.lock();
    self.is_visiting = false;
    devices_[device]->calm_ticks = took < stuck_after_ ? devices_[device]->calm_ticks + 1 : 0;
    if (!was_visited) continue;
    count_visit(self, sample, took);
    self.has_given = true;
  }
  if (!std::exchange(self.has_given, false)) return;
  lock.unlock();
  {
    const MutexLock taking(sink_mutex_);
    sink_.end_round();
  }
  lock.lock();
}

// Of the thread of `self`, which is the one that visits this device. `use`: the lock of a device
// that was visited.
bool Sampling::visit(std::uint32_t index, const Poller& self, DeviceSample& sample,
                     std::unique_lock<DeviceLock>& use) {
  auto& device = *devices_[index];
  const auto tick = self.tick;
  // The next one is about a period after it.
  if (const auto beside = device.visited_beside.exchange(kNoTick); beside != kNoTick) {
    device.due.visited(plan_, index, beside, only(Tier::Medium));
  }
  if (has_viewer_) {
    // Whoever looks at processes wants them each second.
    const auto next = device.due.at(tick);
    if (has(next, Tier::Medium)) device.due.hasten(Tier::Slow, tick);
  }
  auto due = device.due.at(tick);
  if (device.is_cpu) {
    due &= ~only(Tier::Fast);
    if (has(due, Tier::Slow)) due |= only(Tier::Medium);  // it reads nothing without that
  }
  if (due.none() || (device.is_lost && !has(due, Tier::Medium))) return false;
  use = std::unique_lock(device.in_use, std::defer_lock);
  if (!use.try_lock_until(clock_.now() + kInUseWait)) {
    const std::lock_guard lock(mutex_);
    ++ticks_[static_cast<std::size_t>(Tier::Fast)].missed;
    return false;
  }
  if (device.visited_beside != kNoTick) return false;  // just now: the load since says little
  sample.device = index;
  sample.at = clock_.now();
  sample.tiers = due;
  device.sampler->sample(due, *device.watch, sample);
  device.is_lost = sample.lost_reason.has_value();
  device.due.visited(plan_, index, tick, due);
  return true;
}

// Beside the rounds. Whether there is an energy counter, or the CPU was in use just now.
bool Sampling::visit_now(std::uint32_t index) {
  auto& device = *devices_[index];
  // Held until the sample is given away: that of the next visit comes after it.
  std::unique_lock use(device.in_use, std::defer_lock);
  if (!use.try_lock_until(clock_.now() + kInUseWait)) return true;
  DeviceSample sample;
  sample.device = index;
  sample.at = clock_.now();
  sample.tiers = only(Tier::Medium);
  device.sampler->sample(sample.tiers, *device.watch, sample);
  const bool has_counter = device.sampler->energy_joules(*device.watch).has_value();
  device.visited_beside = static_cast<std::uint64_t>((sample.at - begin_) / plan_.period());
  const MutexLock taking(sink_mutex_);
  sink_.take(sample);
  return has_counter;
}

void Sampling::count_visit(Poller& self, const DeviceSample& sample, Duration took) {
  std::size_t slowest = 0;
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (sample.tiers.test(tier)) slowest = tier;
  }
  auto& ticks = ticks_[slowest];
  const auto bucket = std::ranges::lower_bound(CollectorStatus::kTickBounds, seconds(took)) -
                      CollectorStatus::kTickBounds.begin();
  ++ticks.counts[static_cast<std::size_t>(bucket)];
  ticks.seconds += seconds(took);
  self.counted_tick = std::max(self.counted_tick, self.tick);
}

// The visits of the ticks after the last counted one up to `tick`, none of which took place.
void Sampling::count_missed(Poller& poller, std::uint64_t tick) {
  if (tick <= poller.counted_tick) return;
  const auto ticks = tick - poller.counted_tick;
  for (const auto device : poller.devices) {
    if (!devices_[device]->is_cpu && !devices_[device]->is_lost) {
      ticks_[static_cast<std::size_t>(Tier::Fast)].missed += ticks;
    }
  }
  poller.counted_tick = tick;
}

bool Sampling::rejoin(Poller& self) {
  const auto device = self.devices.front();
  if (devices_[device]->calm_ticks < 2 * plan_.every(Tier::Slow)) return false;
  shared_->devices.push_back(device);
  return true;
}

void Sampling::set_alarm(TimePoint time) const {
  // An alarm in the past goes off at once; one at zero would be none.
  const auto since = std::max(time.time_since_epoch(), Duration(1));
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(since);
  const itimerspec timer{{0, 0}, {whole.count(), (since - whole).count()}};
  ::timerfd_settime(alarm_.get(), TFD_TIMER_ABSTIME, &timer, nullptr);
}

// A single device has nobody who would have to go on without it; at the end the watchdog waits for
// its last alarm.
void Sampling::expect_round(const Poller& self, TimePoint begin) const {
  if (&self != shared_ || self.devices.size() < 2 || is_stopping_) return;
  set_alarm(begin + stuck_after_);
}

void Sampling::watch_over() {
  for (;;) {
    std::uint64_t count = 0;
    (void)!::read(alarm_.get(), &count, sizeof count);
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    std::erase_if(pollers_, [](const auto& poller) { return poller->has_ended; });
    const auto now = clock_.now();
    // A round that is not visiting has only just begun, on a machine that is busy, or is ending.
    const auto since = shared_->is_visiting ? shared_->visit_since : now;
    if (shared_->is_visiting && shared_->devices.size() > 1 && since + stuck_after_ <= now) {
      split(*shared_);
    } else {
      expect_round(*shared_, since);
    }
  }
}

void Sampling::split(Poller& stuck) {
  auto others = std::make_unique<Poller>();
  others->devices = std::exchange(stuck.devices, {stuck.visiting});
  std::erase(others->devices, stuck.visiting);
  others->round = std::exchange(stuck.round, {});
  others->has_given = std::exchange(stuck.has_given, false);
  others->tick = stuck.tick;
  others->counted_tick = stuck.counted_tick;
  stuck.is_alone = true;
  devices_[stuck.visiting]->calm_ticks = 0;
  shared_ = others.get();
  add_poller(std::move(others));
}

std::vector<EdgeFound> Sampling::find_edges(Duration limit) {
  std::vector<EdgeCounter> counters;
  for (std::uint32_t i = 0; i < devices_.size(); ++i) {
    auto& device = *devices_[i];
    if (device.sampler == nullptr) continue;
    auto& counter = counters.emplace_back();
    counter = {i, device.sampler, device.watch.get(), &device.in_use};
    if (device.is_cpu) counter.visit = [this, i] { return visit_now(i); };
  }
  return edges_.find(counters, limit);
}

std::array<CollectorStatus::TierTicks, kTierCount> Sampling::ticks() {
  const std::lock_guard lock(mutex_);
  // A visit that hangs has missed those after it before it comes back.
  const auto tick = static_cast<std::uint64_t>((clock_.now() - begin_) / plan_.period());
  for (const auto& poller : pollers_) {
    if (poller->is_visiting && poller->tick < tick) count_missed(*poller, tick);
  }
  return ticks_;
}

void Sampling::add_costs_to(std::map<std::string, CallCost>& costs) const {
  for (const auto& device : devices_) device->watch->add_to(costs);
}

}  // namespace muster
