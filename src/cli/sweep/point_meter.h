#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/stop_signal.h"
#include "cli/monitor_report.h"
#include "config/config.h"
#include "sweep/point_record.h"
#include "telemetry/collector.h"
#include "telemetry/line_recorder.h"

namespace muster {

/// Whether nobody else's process is on the devices, as far as they tell: false where one is;
/// nullopt where no process of `own` is seen on one of them either, as in a container whose
/// processes the driver does not show, or where one is of an unknown pid. Threads: pure.
std::optional<bool> exclusive_use(const std::vector<DeviceStatus>& devices,
                                  const std::vector<pid_t>& own);

/// Watches the devices of one point: their readings and joules in each trial, in the window in
/// which requests are sent and answered.
///
/// Threads: not thread-safe; a thread of its own writes the recording.
class PointMeter {
 public:
  struct Options {
    std::vector<std::string> own_devices;                 // "cuda:0"; a CPU's name means all CPUs
    std::optional<std::filesystem::path> recording = {};  // a line a second; written anew
    /// The processes of the server that is measured; empty: they cannot be told from others.
    std::function<std::vector<pid_t>()> own_processes = {};
  };

  /// Starts a sampler. Errors: those of collector_options, Collector::start and LineRecorder::open.
  static Result<std::unique_ptr<PointMeter>> start(const Config& config, const Clock& clock,
                                                   Options options);

  /// With a sampler that was started. Errors: those of LineRecorder::open.
  static Result<std::unique_ptr<PointMeter>> start(std::unique_ptr<Collector> collector,
                                                   const Clock& clock, Options options);
  ~PointMeter();

  /// Around each trial. Where the counters' edges cannot be found at its begin, it has no devices
  /// and the reason: its requests are measured all the same.
  void begin_trial();
  void end_trial();

  /// Ends the recording. Gives why it is not whole, since no figure of the point is taken from it;
  /// empty: it is whole, or there is none.
  std::string finish();

  /// Of all trials that have ended.
  std::vector<TrialTelemetry> telemetry() const { return telemetry_; }

 private:
  PointMeter(Options options, const Clock& clock, std::unique_ptr<Collector> collector)
      : options_(std::move(options)), clock_(clock), collector_(std::move(collector)) {}

  bool is_own(const DeviceStatus& device) const;
  std::optional<bool> is_exclusive() const;
  void record();

  const Options options_;
  const Clock& clock_;
  const std::unique_ptr<Collector> collector_;
  std::shared_ptr<CommandMeter> trial_;     // nullptr: it could not begin
  std::string trial_fault_;                 // why
  std::optional<bool> was_exclusive_ = {};  // at the begin of the trial
  std::vector<TrialTelemetry> telemetry_;
  std::optional<LineRecorder> recorder_;  // of the thread, as `record_status_` until it is joined
  Status record_status_ = Done{};
  StopSignal stop_;
  std::jthread thread_;
};

}  // namespace muster
