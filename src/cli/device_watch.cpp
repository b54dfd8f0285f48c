// Drivers take up to seconds to open, so the sampler is started on a thread beside the run. A run
// whose devices cannot be watched goes on without: `muster doctor` says why.

#include "cli/device_watch.h"

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "cli/telemetry_options.h"
#include "telemetry/collector.h"
#include "telemetry/device_faults.h"

namespace muster {
namespace {

// What is told by itself comes at once, whatever the periods; readings are for doubtful cases.
constexpr Duration kPeriod = std::chrono::seconds(1);
constexpr Duration kSlowPeriod = std::chrono::seconds(10);
constexpr Duration kStartLimit = std::chrono::seconds(5);  // a run that ends waits for no longer

class DeviceWatch {
 public:
  DeviceWatch(CollectorOptions options, const std::vector<Device>& devices, const Clock& clock)
      : faults_(devices),
        starting_(std::async(std::launch::async, [options = std::move(options), &clock] {
          return Collector::start(options, clock);
        })) {}

  std::vector<DeviceFault> changes() {
    if (starting_.valid() &&
        starting_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      if (auto started = starting_.get()) collector_ = *std::move(started);
    }
    if (!collector_) return {};
    return faults_.changes(collector_->snapshot());
  }

 private:
  DeviceFaults faults_;
  std::unique_ptr<Collector> collector_;
  std::future<Result<std::unique_ptr<Collector>>> starting_;
};

}  // namespace

std::function<std::vector<DeviceFault>()> watch_for_faults(const Config& config,
                                                           const std::vector<Device>& devices,
                                                           const Clock& clock) {
  const bool has_gpu = std::any_of(devices.begin(), devices.end(),
                                   [](const Device& device) { return runs_as_gpu(device.kind); });
  auto options = collector_options(config);
  if (!has_gpu || !options) return {};
  options->periods = {kPeriod, kPeriod, kSlowPeriod};
  options->history = Duration{};
  options->start_limit = kStartLimit;
  auto watch = std::make_shared<DeviceWatch>(*std::move(options), devices, clock);
  return [watch] { return watch->changes(); };
}

}  // namespace muster
