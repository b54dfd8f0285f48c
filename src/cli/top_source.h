#pragma once

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "hw/cpu/process_reader.h"
#include "telemetry/collector.h"
#include "views/top_data.h"
#include "views/top_state.h"

namespace muster {

/// Where `muster top` has its frames from.
///
/// Threads: not thread-safe; owned by the loop of the screen.
class TopSource {
 public:
  virtual ~TopSource() = default;

  /// The frame of now; nullopt: there is none yet.
  ///
  /// Errors: what ended the watching, or broke the recording.
  virtual Result<std::optional<TopData>> frame() = 0;

  /// How long the frame of now stays.
  virtual Duration interval() const = 0;

  /// A key that is about the frames themselves; of a recording only.
  virtual void take(TopRequestKind kind) = 0;

  /// Why the processes shown cannot be sent signals; nullopt: they can.
  virtual std::optional<std::string> signal_refusal() const = 0;
};

/// The devices as they are.
class LiveSource final : public TopSource {
 public:
  /// Starts a collector in the background, as a driver may take seconds to answer at first, and
  /// gives it a moment, so that what cannot be watched at all is said before a screen is opened.
  ///
  /// Errors: those of `Collector::start` that come within that moment.
  static Result<std::unique_ptr<LiveSource>> start(const CollectorOptions& options,
                                                   const Clock& clock, Duration interval);

  Result<std::optional<TopData>> frame() override;
  Duration interval() const override;
  void take(TopRequestKind kind) override;
  std::optional<std::string> signal_refusal() const override;

  /// Waits until the collector has started, however long it takes.
  Status wait();

  /// The collector has started, or could not: this can be destroyed without waiting.
  bool is_settled() const;

 private:
  LiveSource(const CollectorOptions& options, const Clock& clock, Duration interval);

  Status settle(Duration limit);
  void look_at_processes();

  const CollectorOptions options_;
  const Duration interval_;
  const Clock& clock_;
  std::unique_ptr<Collector> collector_;
  std::future<Result<std::unique_ptr<Collector>>> starting_;
  std::deque<TelemetrySnapshot> recent_;  // of kCostWindow
  ProcessReader process_reader_;
  std::vector<HostProcess> processes_;  // of the last look
  TimePoint looked_at_;
};

/// The sampler tells of its cost each second, so that the difference of two neighbours is nothing
/// or twice too much: cores are a mean over so long.
inline constexpr Duration kCostWindow = std::chrono::seconds(10);

/// Cores that the sampler kept busy between two moments; nullopt where nothing tells, it was
/// started anew, or they are too near.
std::optional<double> sampler_cores(const TelemetrySnapshot& before, const TelemetrySnapshot& now);

/// "14:02:31", in local time.
std::string clock_text(double unix_seconds);

}  // namespace muster
