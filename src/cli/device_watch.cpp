// Drivers take up to seconds to open, so the sampler is started on a thread beside the run. A run
// whose devices cannot be watched says so once, and goes on; `muster doctor` says why. One that
// ends while a driver is being opened cancels the start and waits for no driver.

#include "cli/device_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "cli/telemetry_options.h"
#include "telemetry/collector.h"
#include "telemetry/device_faults.h"

namespace muster {
namespace {

// What is told by itself comes at once, whatever the periods; readings are for doubtful cases.
constexpr Duration kPeriod = std::chrono::seconds(1);
constexpr Duration kSlowPeriod = std::chrono::seconds(10);

class DeviceWatch {
 public:
  DeviceWatch(CollectorOptions options, const std::vector<Device>& devices, const Clock& clock)
      : faults_(devices),
        starting_([this, options = std::move(options), &clock](const std::stop_token& ending) {
          start(options, clock, ending);
        }) {}

  DeviceNews news() {
    DeviceNews news;
    if (auto started = take_started()) {
      if (*started) {
        collector_ = *std::move(*started);
      } else {
        news.notice = fmt::format("faults that the drivers of GPUs report are not seen: {}",
                                  started->error().message);
      }
    }
    if (collector_) news.faults = faults_.changes(collector_->snapshot());
    return news;
  }

 private:
  using Started = Result<std::unique_ptr<Collector>>;

  void start(const CollectorOptions& options, const Clock& clock, const std::stop_token& ending) {
    auto started = Collector::start(options, clock, [&] { return ending.stop_requested(); });
    const MutexLock lock(mutex_);
    started_.emplace(std::move(started));
  }

  std::optional<Started> take_started() {
    const MutexLock lock(mutex_);
    return std::exchange(started_, std::nullopt);
  }

  DeviceFaults faults_;
  std::unique_ptr<Collector> collector_;
  Mutex mutex_;
  std::optional<Started> started_ MUSTER_GUARDED_BY(mutex_);  // until the run has taken it
  std::jthread starting_;                                     // its end asks for that of the start
};

}  // namespace

Result<std::function<DeviceNews()>> watch_for_faults(const Config& config,
                                                     const std::vector<Device>& devices,
                                                     const Clock& clock) {
  const bool has_gpu = std::any_of(devices.begin(), devices.end(),
                                   [](const Device& device) { return runs_as_gpu(device.kind); });
  if (!has_gpu) return std::function<DeviceNews()>();
  auto options = MUSTER_TRY(collector_options(config));
  options.periods = {kPeriod, kPeriod, kSlowPeriod};
  options.history = Duration{};
  auto watch = std::make_shared<DeviceWatch>(std::move(options), devices, clock);
  return std::function<DeviceNews()>([watch] { return watch->news(); });
}

}  // namespace muster
