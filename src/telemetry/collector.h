#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "spec/telemetry.h"

namespace muster {

/// Where the sampler looks, and how often.
struct CollectorOptions {
  std::filesystem::path program;            // empty: muster-sampler beside this program
  std::vector<std::string> nvml_libraries;  // empty: the system's
  std::filesystem::path root = "/";         // in front of /proc and /sys
  std::optional<std::string> simulated;     // "sim:8xH100-80G" or a machine file: nothing of here
  std::array<Duration, kTierCount> periods{std::chrono::milliseconds(100), std::chrono::seconds(1),
                                           std::chrono::seconds(10)};
  Duration history = std::chrono::minutes(15);  // 0: none is kept
  Duration start_limit = std::chrono::seconds(15);
};

/// A point of the history of a reading.
struct HistoryPoint {
  TimePoint at;
  double value = 0;
};

/// The energy of one device between two edges of its counter.
struct EnergyEdge {
  std::uint32_t device = 0;
  std::optional<TimePoint> at;  // nullopt: the counter is missing or stood still
  double joules = 0;            // the counter there
  Duration within{};            // the edge is at most so far from `at`
  std::string missing_reason;   // when `at` is not set
};

/// Watches the devices of this machine through a sampler process, and keeps what it says.
///
/// The sampler is a process of its own: a driver call that hangs holds one thread of it, one that
/// crashes ends it alone, and it is started again within a second. A device in whose call it died
/// twice is left out from then on, and says so.
///
/// Threads: one thread of its own reads the frames; every method may be called by any thread and
/// returns at once, whatever the driver does, but for `start` and `find_edges`.
class Collector {
 public:
  /// Starts the sampler and waits until it has told what there is and visited each device once.
  ///
  /// is_cancelled: asked ten times a second, on the calling thread; may be empty.
  /// Errors: Unavailable (it cannot be started, or dies at once), DeadlineExceeded, Cancelled,
  /// InvalidArgument (a broken machine file or scenario, in the sampler's own words).
  static Result<std::unique_ptr<Collector>> start(const CollectorOptions& options,
                                                  const Clock& clock,
                                                  const std::function<bool()>& is_cancelled = {});
  virtual ~Collector() = default;

  virtual const WatchedMachine& machine() const = 0;
  virtual TelemetrySnapshot snapshot() const = 0;

  /// The readings of the last `since`, oldest first.
  virtual std::vector<HistoryPoint> history(std::uint32_t device, Reading reading,
                                            Duration since) const = 0;

  /// Calls `on_sample` for every sample and event from now on, from the collector's thread; it must
  /// be quick.
  virtual void subscribe(std::function<void(const DeviceSample&)> on_sample) = 0;

  /// Has each CPU visited at once and asks for the next edge of every energy counter, at most for
  /// `limit`. Blocks until the sampler has answered, at most twelve seconds longer. Subscribers
  /// have got the samples of the visits when it returns.
  ///
  /// Errors: DeadlineExceeded (no answer), Unavailable (the sampler ended meanwhile).
  virtual Result<std::vector<EnergyEdge>> find_edges(Duration limit) = 0;

  /// A viewer is there: processes are listed each second instead of every ten.
  virtual void set_viewer(bool is_there) = 0;
};

}  // namespace muster
