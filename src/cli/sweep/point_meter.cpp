// The window of a trial is that of its requests: it begins when the first is about to be sent and
// ends behind the last answer, so joules and requests belong together. Starting the server, loading
// the model and the pauses between trials are in none.
#include "cli/sweep/point_meter.h"

#include <algorithm>
#include <utility>

#include "cli/telemetry_options.h"
#include "telemetry/recording.h"

namespace muster {
namespace {

constexpr auto kRecordEvery = std::chrono::seconds(1);

// "cpu:0", "2xcpu".
bool is_cpu_name(const std::string& name) {
  return name.starts_with("cpu") || name.ends_with("xcpu");
}

// False where one is; else true only where both are known.
std::optional<bool> both(std::optional<bool> a, std::optional<bool> b) {
  if (a == false || b == false) return false;
  return a && b ? std::optional(true) : std::nullopt;
}

std::optional<bool> exclusive_use(const DeviceStatus& device, const std::vector<pid_t>& own) {
  bool has_own = false;
  bool has_unknown = false;
  for (const auto& process : device.processes) {
    if (process.kind == GpuProcessKind::Mps) continue;
    const auto pid = static_cast<pid_t>(process.pid);
    const bool is_own = std::ranges::find(own, pid) != own.end();
    if (pid != 0 && !is_own) return false;
    has_own = has_own || is_own;
    has_unknown = has_unknown || pid == 0;
  }
  return has_own && !has_unknown ? std::optional(true) : std::nullopt;
}

}  // namespace

std::optional<bool> exclusive_use(const std::vector<DeviceStatus>& devices,
                                  const std::vector<pid_t>& own) {
  std::optional<bool> all = devices.empty() ? std::nullopt : std::optional(true);
  for (const auto& device : devices) all = both(all, exclusive_use(device, own));
  return all;
}

Result<std::unique_ptr<PointMeter>> PointMeter::start(const Config& config, const Clock& clock,
                                                      Options options) {
  auto collecting = MUSTER_TRY(collector_options(config));
  collecting.history = Duration{};
  auto collector = MUSTER_TRY(Collector::start(collecting, clock));
  return start(std::move(collector), clock, std::move(options));
}

Result<std::unique_ptr<PointMeter>> PointMeter::start(std::unique_ptr<Collector> collector,
                                                      const Clock& clock, Options options) {
  collector->set_viewer(true);  // who else is on the devices is asked each second
  std::unique_ptr<PointMeter> meter(
      new PointMeter(std::move(options), clock, std::move(collector)));
  if (!meter->options_.recording) return meter;
  const LineRecorder::Options lines{.file = *meter->options_.recording, .keys = recording_keys()};
  // That of an earlier try goes, and nothing that is no recording: opening it refuses that.
  MUSTER_TRY(LineRecorder::open(lines));
  std::error_code fault;
  std::filesystem::remove(lines.file, fault);
  if (fault) return system_error(lines.file.string(), "remove", fault.value());
  meter->recorder_ = MUSTER_TRY(LineRecorder::open(lines));
  meter->thread_ = std::jthread([raw = meter.get()] { raw->record(); });
  return meter;
}

PointMeter::~PointMeter() { (void)finish(); }

std::string PointMeter::finish() {
  stop_.raise();
  if (thread_.joinable()) thread_.join();
  return record_status_ ? std::string() : record_status_.error().message;
}

void PointMeter::record() {
  do {
    record_status_ = recorder_->write(recording_line(collector_->snapshot(), {}));
  } while (record_status_ && stop_.wait(kRecordEvery));
}

// CPUs are watched by their nodes, whatever devices their cores are shared into.
bool PointMeter::is_own(const DeviceStatus& device) const {
  const auto& own = options_.own_devices;
  if (device.identity.device.kind == DeviceKind::Cpu) return std::ranges::any_of(own, is_cpu_name);
  return std::ranges::find(own, device.name) != own.end();
}

// At this moment. Whose processes compute on CPUs is not told device by device.
std::optional<bool> PointMeter::is_exclusive() const {
  const bool can_tell =
      options_.own_processes && std::ranges::none_of(options_.own_devices, is_cpu_name);
  if (!can_tell) return std::nullopt;
  auto devices = collector_->snapshot().devices;
  std::erase_if(devices, [this](const DeviceStatus& device) { return !is_own(device); });
  return exclusive_use(devices, options_.own_processes());
}

void PointMeter::begin_trial() {
  was_exclusive_ = is_exclusive();
  auto trial = CommandMeter::start(*collector_, clock_);
  trial_fault_ = trial ? std::string() : trial.error().message;
  trial_ = trial ? *std::move(trial) : nullptr;
}

void PointMeter::end_trial() {
  if (!trial_) {
    telemetry_.push_back({.devices = {}, .missing_reason = trial_fault_});
    return;
  }
  const auto use = trial_->finish(*collector_);
  TrialTelemetry telemetry;
  telemetry.is_exclusive = both(was_exclusive_, is_exclusive());
  const auto snapshot = collector_->snapshot();
  for (std::size_t i = 0; i < use.devices.size() && i < snapshot.devices.size(); ++i) {
    const auto& device = use.devices[i];
    telemetry.devices.push_back({.identity = device.identity,
                                 .name = device.name,
                                 .is_own = is_own(snapshot.devices[i]),
                                 .use = device.use,
                                 .energy = device.energy});
  }
  telemetry_.push_back(std::move(telemetry));
}

}  // namespace muster
