#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "hw/device_sampler.h"
#include "telemetry/device_lock.h"
#include "wire/telemetry_messages.h"

namespace muster {

/// One energy counter to watch for its next change.
struct EdgeCounter {
  std::uint32_t device = 0;
  DeviceSampler* sampler = nullptr;
  CallWatch* watch = nullptr;
  DeviceLock* in_use = nullptr;  // held while the sampler is called
  /// Of a CPU: called once, before the first look; reads files of the kernel and tells whether
  /// there is a counter.
  std::function<bool()> visit = {};
};

/// Tells from looks at one counter when it changed.
///
/// Not thread-safe; owned by one search.
class EdgeDetector {
 public:
  /// One look: the call that gave `joules` lasted from `before` to `after`. The edge, when this is
  /// the first look with a new value; `device` is left to the caller.
  std::optional<EdgeFound> look(TimePoint before, double joules, TimePoint after);

 private:
  std::optional<double> old_;
  TimePoint old_before_;
};

/// Finds edges of energy counters: the moment a counter changes, and its new value. A driver
/// refreshes its counter every 20 to 100 ms and says nothing between, so a difference of two plain
/// readings is wrong by up to a refresh at each end; between two edges it is exact but for the gap
/// between two looks.
/// Source: Yang et al. 2024, "Part-time Power Measurements: nvidia-smi's Lack of Attention", for
/// the refresh periods.
///
/// Threads: `find` may be called by any thread. The destructor waits for the looks in progress.
class EdgeSearch {
 public:
  explicit EdgeSearch(const Clock& clock) : clock_(clock) {}
  ~EdgeSearch();

  /// Looks at each counter every millisecond, at most for `limit`, each from a thread of its own,
  /// so that a driver that hangs holds up no other device. The answer comes at most 270 ms after
  /// `limit`, and where a CPU's visit hangs or gets no core, 5.02 s. Answers in the order of the
  /// counters.
  std::vector<EdgeFound> find(const std::vector<EdgeCounter>& counters, Duration limit);

 private:
  struct Round {
    std::vector<EdgeFound> found;       // guarded by mutex_
    std::vector<TimePoint> open_until;  // guarded by mutex_; of what was found: TimePoint()
  };
  struct Look {
    std::uint32_t device = 0;
    bool has_ended = false;  // guarded by mutex_
    std::jthread thread;
  };

  EdgeFound look(const EdgeCounter& counter, Duration limit, TimePoint latest);
  void begin_look(const EdgeCounter& counter, Duration limit, const std::shared_ptr<Round>& round);
  bool pause(TimePoint until);

  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;  // guarded by mutex_
  std::list<Look> looks_;     // guarded by mutex_
};

}  // namespace muster
