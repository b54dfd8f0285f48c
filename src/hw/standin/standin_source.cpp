// Samplers of stand-ins for GPUs, over the files in which the library says how they are. A file is
// one page of memory that both sides map, so a visit costs nothing.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "hw/device_sources.h"
#include "spec/standin_device.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// An empty file becomes as long as the library makes it: whoever comes first. One of another length
// is something else's, and stays as it is.
std::shared_ptr<const StandinReport> map_report(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open()) return nullptr;
  struct stat known {};
  if (::fstat(file.get(), &known) != 0) return nullptr;
  const bool is_whole = known.st_size == static_cast<off_t>(sizeof(StandinReport));
  if (!is_whole && known.st_size != 0) return nullptr;
  if (!is_whole && ::ftruncate(file.get(), sizeof(StandinReport)) != 0) return nullptr;
  void* place = ::mmap(nullptr, sizeof(StandinReport), PROT_READ, MAP_SHARED, file.get(), 0);
  if (place == MAP_FAILED) return nullptr;
  return {static_cast<const StandinReport*>(place),
          [place](const StandinReport*) { ::munmap(place, sizeof(StandinReport)); }};
}

class StandinSampler final : public DeviceSampler {
 public:
  StandinSampler(std::uint32_t index, std::shared_ptr<const StandinReport> report)
      : report_(std::move(report)) {
    identity_.device.kind = DeviceKind::Standin;
    identity_.device.index = index;
    identity_.device.model = "stand-in for a GPU";
    identity_.device.memory_total_bytes = kStandinMemoryBytes;
  }

  const DeviceIdentity& identity() const override { return identity_; }

  void sample(TierSet due, CallWatch& /*watch*/, DeviceSample& sample) override {
    const auto pid = report_->pid.load();
    // Of another user it may not be asked, and is there.
    const bool is_in_use = pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
    if (const auto error = report_->error.load(); is_in_use && error != 0) {
      sample.lost_reason = fmt::format("it computes no more (CUDA error {})", error);
      return;
    }
    if (is_due(due, Tier::Fast)) {
      if (const auto share = busy_share(sample.at)) {
        sample.readings.set(Reading::GpuUtilization, is_in_use ? *share : 0);
      }
    }
    if (!is_due(due, Tier::Medium)) return;
    const auto size = is_in_use ? report_->memory_bytes.load() : kStandinMemoryBytes;
    const auto taken = is_in_use ? std::min(size, report_->taken_bytes.load()) : 0;
    sample.readings.set(Reading::GpuMemorySize, static_cast<double>(size));
    sample.readings.set(Reading::GpuMemoryUsed, static_cast<double>(taken));
    sample.readings.set(Reading::GpuMemoryFree, static_cast<double>(size - taken));
  }

  std::optional<double> energy_joules(CallWatch& /*watch*/) override { return std::nullopt; }

 private:
  // Of the time since the last visit; several streams at once are one device that is busy.
  std::optional<double> busy_share(TimePoint now) {
    const auto busy_ns = report_->busy_ns.load();
    const auto [then, busy_then] = std::exchange(last_, {now, busy_ns});
    if (!then || now <= *then || busy_ns < busy_then) return std::nullopt;
    const std::chrono::duration<double, std::nano> time = now - *then;
    return std::min(1.0, static_cast<double>(busy_ns - busy_then) / time.count());
  }

  DeviceIdentity identity_;
  const std::shared_ptr<const StandinReport> report_;
  std::pair<std::optional<TimePoint>, std::uint64_t> last_;
};

// XIDs that came since it was made. Nobody wakes who waits for memory to change, so it is looked at
// again and again.
class StandinEvents final : public DeviceEventSource {
 public:
  // reports: of the samplers, in their order.
  explicit StandinEvents(std::vector<std::shared_ptr<const StandinReport>> reports)
      : reports_(std::move(reports)) {
    for (const auto& report : reports_) seen_.push_back(report->xid_count.load());
  }

  Result<std::vector<DeviceEvent>> wait(Duration time) override {
    constexpr int kLookMs = 10;
    const auto until = std::chrono::steady_clock::now() + time;
    for (;;) {
      auto events = news();
      if (!events.empty() || std::chrono::steady_clock::now() >= until) return events;
      (void)::poll(nullptr, 0, kLookMs);
    }
  }

 private:
  std::vector<DeviceEvent> news() {
    std::vector<DeviceEvent> events;
    for (std::size_t i = 0; i < reports_.size(); ++i) {
      const auto count = reports_[i]->xid_count.load();
      if (std::exchange(seen_[i], count) == count) continue;
      events.push_back({.device = static_cast<std::uint32_t>(i),
                        .kind = DeviceEventKind::Xid,
                        .code = reports_[i]->xid.load(),
                        .at = std::chrono::steady_clock::now()});
    }
    return events;
  }

  const std::vector<std::shared_ptr<const StandinReport>> reports_;
  std::vector<std::uint64_t> seen_;  // how many of each were known
};

}  // namespace

Result<DeviceSource> open_standins(const fs::path& folder) {
  DeviceSource source;
  std::vector<std::shared_ptr<const StandinReport>> reports;
  for (std::uint32_t i = 0; i < kStandinCount; ++i) {
    const auto report = map_report(folder / fmt::format("standin-{}", i));
    if (!report) continue;
    source.samplers.push_back(std::make_unique<StandinSampler>(i, report));
    reports.push_back(report);
  }
  if (source.samplers.empty()) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("no stand-in is to be watched in {}", folder.string())};
  }
  source.events = std::make_unique<StandinEvents>(std::move(reports));
  return source;
}

}  // namespace muster
