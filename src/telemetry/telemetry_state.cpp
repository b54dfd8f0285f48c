// What is known of each device and how old it is. A reading is shown for two periods of its tier
// and then dropped, so an old value is never shown as a current one. Why a device is down is
// worked out when somebody asks, from facts and their times, in an order that puts the most
// definite reason first.

#include "telemetry/telemetry_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "telemetry/health.h"

namespace muster {
namespace {

// A device that has not answered for so long is down: long enough for a restart of the sampler,
// and short enough to be told within two seconds.
constexpr Duration kSilence = std::chrono::milliseconds(1500);
// A call that takes so long hangs: the slowest that is known, NVML's count of PCIe traffic, takes
// 20 ms a direction. Source: nvml.h 13.3, nvmlDeviceGetPcieThroughput.
constexpr Duration kHang = std::chrono::seconds(1);

bool is_gpu(const DeviceIdentity& identity) {
  return identity.device.kind != DeviceKind::Cpu && !identity.parent;
}

// "3 s": whole seconds, as it is told to people.
std::string whole_seconds(Duration duration) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

// Put together once: ten times a second the table is too long to go through.
const std::vector<Reading>& readings_of(std::size_t tier) {
  static const auto tiers = [] {
    std::array<std::vector<Reading>, kTierCount> lists;
    for (const auto& info : reading_table()) {
      lists[static_cast<std::size_t>(info.tier)].push_back(info.reading);
    }
    return lists;
  }();
  return tiers[tier];
}

// Where asking for energy takes long, it is read in the medium tier though it belongs to the fast
// one, and stays until the next visit of the medium tier.
bool waits_for_medium(Reading reading, TierSet visited) {
  return reading == Reading::GpuEnergy && !is_due(visited, Tier::Medium);
}

void add_costs(SamplerCosts& sum, const SamplerCosts& costs) {
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    auto& ticks = sum.ticks[tier];
    for (std::size_t i = 0; i < ticks.counts.size(); ++i) {
      ticks.counts[i] += costs.ticks[tier].counts[i];
    }
    ticks.seconds += costs.ticks[tier].seconds;
    ticks.missed += costs.ticks[tier].missed;
  }
  for (const auto& cost : costs.calls) {
    auto found = std::ranges::find(sum.calls, cost.function, &CallCost::function);
    if (found == sum.calls.end()) {
      sum.calls.push_back(cost);
      continue;
    }
    found->calls += cost.calls;
    found->seconds += cost.seconds;
    for (const auto& [code, times] : cost.errors) found->errors[code] += times;
  }
  sum.cpu_seconds += costs.cpu_seconds;
}

}  // namespace

TelemetryState::TelemetryState(WatchedMachine machine, const Options& options)
    : machine_(std::move(machine)), options_(options) {
  for (const auto& identity : machine_.devices) {
    names_.push_back(shown_name(identity, machine_.devices));
    devices_.emplace_back(DeviceHistory(identity.device.kind, options_.periods, options_.history));
    if (is_gpu(identity)) ++expected_gpus_;
  }
}

void TelemetryState::add(const DeviceSample& sample) {
  if (sample.device >= devices_.size()) return;
  auto& known = devices_[sample.device];
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (!sample.tiers.test(tier)) continue;
    known.taken[tier] = sample.at;
    for (const auto reading : readings_of(tier)) {
      // A reading of this tier that is not set could not be taken: it must not be shown any more.
      const auto value = sample.readings.get(reading);
      if (value) {
        known.readings.set(reading, *value);
      } else if (!waits_for_medium(reading, sample.tiers)) {
        known.readings.clear(reading);
      }
    }
  }
  if (!sample.core_loads.empty()) known.core_loads = sample.core_loads;
  if (sample.processes) {
    known.processes = *sample.processes;
    known.processes_taken = sample.at;
  }
  for (const auto& error : sample.errors) ++known.error_counts[error.code];
  known.lost_reason = sample.lost_reason;
  const bool has_answered = sample.readings.count() > 0 || sample.errors.empty();
  if (!sample.lost_reason && has_answered) known.last_success = sample.at;
  known.history.add(sample);
}

void TelemetryState::add(const DeviceEvent& event, double unix_seconds) {
  if (event.device >= devices_.size() || event.kind != DeviceEventKind::Xid) return;
  auto& xid = devices_[event.device].xids[static_cast<std::uint32_t>(event.code)];
  ++xid.count;
  xid.last_unix_seconds = unix_seconds;
}

void TelemetryState::sampler_started(std::uint32_t pid) {
  ++start_count_;
  sampler_pid_ = pid;
}

void TelemetryState::sampler_died() {
  add_costs(past_, std::exchange(costs_, {}));
  sampler_pid_.reset();
}

void TelemetryState::set_listed(std::uint32_t device, bool is_listed) {
  devices_[device].is_listed = is_listed;
}

void TelemetryState::leave_out(std::uint32_t device, std::string reason) {
  devices_[device].left_out_reason = std::move(reason);
}

Duration TelemetryState::silence_limit(std::uint32_t device) const {
  // Two and a half periods of what the device is visited for: a CPU has nothing in the fast tier.
  const bool is_cpu = machine_.devices[device].device.kind == DeviceKind::Cpu;
  const auto tier = is_cpu ? Tier::Medium : Tier::Fast;
  return std::max(kSilence, options_.periods[static_cast<std::size_t>(tier)] * 5 / 2);
}

std::string TelemetryState::down_reason(std::uint32_t device, TimePoint now,
                                        const CallOf& call_of) const {
  const auto& known = devices_[device];
  if (!known.left_out_reason.empty()) return known.left_out_reason;
  if (!known.is_listed) return "the driver does not list it any more";
  const auto call = call_of(device);
  if (call && now - call->since >= kHang) {
    return fmt::format("hung in {} for {}", call->function, whole_seconds(now - call->since));
  }
  if (known.lost_reason) return *known.lost_reason;
  if (known.last_success) {
    const auto silence = now - *known.last_success;
    // A lost device is visited each medium period, so it comes back later than it went.
    if (silence <= silence_limit(device)) return "";
    if (!sampler_pid_) return "its sampler is being started again";
    return fmt::format("no answer for {}", whole_seconds(silence));
  }
  return "no answer yet";
}

bool TelemetryState::is_complete(TimePoint now, const CallOf& call_of) const {
  for (std::uint32_t i = 0; i < devices_.size(); ++i) {
    const auto& known = devices_[i];
    const bool was_visited =
        std::ranges::any_of(known.taken, [](const auto& taken) { return taken.has_value(); });
    if (!was_visited && down_reason(i, now, call_of) == "no answer yet") return false;
  }
  return true;
}

void TelemetryState::take_fresh(const Known& known, TimePoint now, DeviceStatus& status) const {
  const auto is_fresh = [&](const std::optional<TimePoint>& taken, Tier tier) {
    return taken && now - *taken <= 2 * options_.periods[static_cast<std::size_t>(tier)];
  };
  status.readings = known.readings;
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    if (is_fresh(known.taken[tier], static_cast<Tier>(tier))) continue;
    for (const auto reading : readings_of(tier)) status.readings.clear(reading);
  }
  if (is_fresh(known.processes_taken, Tier::Slow)) status.processes = known.processes;
  if (is_fresh(known.taken[static_cast<std::size_t>(Tier::Medium)], Tier::Medium)) {
    status.core_loads = known.core_loads;
  }
}

DeviceStatus TelemetryState::status_of(std::uint32_t device, TimePoint now, double unix_seconds,
                                       const CallOf& call_of) const {
  const auto& known = devices_[device];
  DeviceStatus status;
  status.identity = machine_.devices[device];
  status.name = names_[device];
  status.down_reason = down_reason(device, now, call_of);
  status.is_up = status.down_reason.empty();
  status.lost_reason = known.lost_reason.value_or("");
  if (status.is_up) take_fresh(known, now, status);
  if (known.last_success) {
    status.last_success_unix_seconds = unix_seconds - seconds(now - *known.last_success);
  }
  status.xids = known.xids;
  status.error_counts = known.error_counts;
  status.health = judge(status, unix_seconds);
  return status;
}

CollectorStatus TelemetryState::collector_status() const {
  auto sum = past_;
  add_costs(sum, costs_);
  CollectorStatus status;
  status.ticks = sum.ticks;
  status.calls = std::move(sum.calls);
  status.restarts = start_count_ > 0 ? start_count_ - 1 : 0;
  status.sampler_pid = sampler_pid_;
  status.cpu_seconds = sum.cpu_seconds;
  status.rss_bytes = costs_.rss_bytes;
  return status;
}

TelemetrySnapshot TelemetryState::snapshot(TimePoint now, double unix_seconds,
                                           const CallOf& call_of) const {
  TelemetrySnapshot snapshot;
  snapshot.at = now;
  snapshot.unix_seconds = unix_seconds;
  snapshot.machine = machine_.name;
  for (std::uint32_t i = 0; i < devices_.size(); ++i) {
    snapshot.devices.push_back(status_of(i, now, unix_seconds, call_of));
  }
  snapshot.links = machine_.links;
  snapshot.expected_gpus = expected_gpus_;
  snapshot.gpu_absent_reason = machine_.gpu_absent_reason;
  snapshot.collector = collector_status();
  return snapshot;
}

std::vector<HistoryPoint> TelemetryState::history(std::uint32_t device, Reading reading,
                                                  TimePoint since) const {
  if (device >= devices_.size()) return {};
  return devices_[device].history.points(reading, since);
}

}  // namespace muster
