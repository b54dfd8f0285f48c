#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/stop_signal.h"
#include "base/unique_fd.h"
#include "hw/device_sampler.h"
#include "telemetry/call_costs.h"
#include "telemetry/call_page.h"
#include "telemetry/device_lock.h"
#include "telemetry/edge_search.h"
#include "telemetry/tick_plan.h"

namespace muster {

/// Where samples go.
///
/// Threads: called by the visiting threads, one at a time.
class SampleSink {
 public:
  virtual ~SampleSink() = default;

  virtual void take(const DeviceSample& sample) = 0;
  /// All samples of a tick are taken.
  virtual void end_round() = 0;
};

/// Visits devices at their tiers' periods, and goes on with the others when one hangs.
///
/// One thread visits all devices of a tick: one wake-up a tick. A watchdog looks on, by a timer
/// that each round which ends pushes on to a quarter of a period after the begin of the next, so
/// that it goes off only when a visit takes longer. The device then keeps its thread, and the
/// others get a new one, which goes on within the same tick. A device that was quick for two slow
/// periods comes back to the others.
///
/// Deadlines are absolute, so nothing drifts; a visit that is due while the one before it still
/// runs does not take place, and is counted. A device that says it is lost is visited with the
/// medium tier only.
///
/// Threads: every method may be called by any thread. The destructor waits for the calls in
/// progress.
class Sampling {
 public:
  /// samplers and sink: borrowed; a device that shall be left out is nullptr.
  Sampling(std::vector<DeviceSampler*> samplers, const std::array<Duration, kTierCount>& periods,
           CallPage& page, const Clock& clock, SampleSink& sink);
  ~Sampling();

  void set_viewer(bool is_there) { has_viewer_ = is_there; }

  /// Finds the next edge of every energy counter. Each CPU is visited first, since its load is what
  /// happened between two visits a second apart; GPUs are looked at meanwhile. Blocks as long as
  /// `EdgeSearch::find`.
  std::vector<EdgeFound> find_edges(Duration limit);

  std::array<CollectorStatus::TierTicks, kTierCount> ticks();
  void add_costs_to(std::map<std::string, CallCost>& costs) const;

 private:
  static constexpr std::uint64_t kNoTick = UINT64_MAX;

  struct Watched {
    DeviceSampler* sampler = nullptr;
    std::unique_ptr<CallCosts> watch;
    DueTiers due;         // of the thread that visits it
    bool is_cpu = false;  // has nothing in the fast tier
    std::atomic<bool> is_lost = false;
    DeviceLock in_use;  // a visit, or a look at its energy counter
    std::atomic<std::uint64_t> visited_beside = kNoTick;  // the tick of a visit by `visit_now`
    std::uint64_t calm_ticks = 0;  // visits in a row that were quick; guarded by mutex_
  };
  struct Poller {
    std::vector<std::uint32_t> devices;
    std::vector<std::uint32_t> round;  // of this tick: those still to be visited, the last first
    std::uint64_t tick = 0;
    std::uint64_t counted_tick = 0;  // up to here missed visits are counted
    bool is_alone = false;           // with a device that is slow or hangs
    bool is_visiting = false;
    bool has_given = false;  // samples of this tick
    bool has_ended = false;
    std::uint32_t visiting = 0;
    TimePoint visit_since;
    std::jthread thread;  // last: it uses the others
  };

  TimePoint tick_time(std::uint64_t tick) const { return begin_ + plan_.period() * tick; }
  void add_poller(std::unique_ptr<Poller> poller);
  void run(Poller& self);
  void visit_round(Poller& self, std::unique_lock<std::mutex>& lock);
  bool visit(std::uint32_t index, const Poller& self, DeviceSample& sample,
             std::unique_lock<DeviceLock>& use);
  bool visit_now(std::uint32_t index);
  void count_visit(Poller& self, const DeviceSample& sample, Duration took);
  void count_missed(Poller& poller, std::uint64_t tick);
  bool rejoin(Poller& self);
  void set_alarm(TimePoint time) const;
  void expect_round(const Poller& self, TimePoint begin) const;
  void watch_over();
  void split(Poller& stuck);

  const TickPlan plan_;
  const Clock& clock_;
  const TimePoint begin_;
  const Duration stuck_after_;
  std::vector<std::unique_ptr<Watched>> devices_;  // the list does not change
  std::atomic<bool> has_viewer_ = false;
  Mutex sink_mutex_;
  SampleSink& sink_;      // guarded by sink_mutex_
  const UniqueFd alarm_;  // a timer: when the watchdog shall look
  StopSignal stop_;       // ends the sleep between two rounds

  std::mutex mutex_;
  bool is_stopping_ = false;                                    // guarded by mutex_
  std::vector<std::unique_ptr<Poller>> pollers_;                // guarded by mutex_, as the Pollers
  Poller* shared_ = nullptr;                                    // guarded by mutex_
  std::array<CollectorStatus::TierTicks, kTierCount> ticks_{};  // guarded by mutex_
  EdgeSearch edges_;
  std::jthread watchdog_;
};

}  // namespace muster
