// Writes families in a fixed order from one snapshot, so two scrapes of one moment are byte-equal.
// Absent readings have no line: a zero would be a number that nobody measured.

#include "metrics/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/build_info.h"
#include "metrics/dcgm_names.h"
#include "metrics/metric_text.h"
#include "metrics/series_labels.h"

namespace muster {
namespace {

using Devices = std::vector<LabelledDevice>;

// The XIDs that the alert rules name. Their counters start at zero: increase() cannot see the step
// of a counter that was not there before.
constexpr std::array<std::uint32_t, 10> kAlertedXids{48, 62, 64, 74, 79, 94, 95, 119, 120, 140};

constexpr std::size_t kProcessesMax = 32;  // series of a device; gpu_processes counts them all

std::string label(std::string_view name, std::string_view value) {
  std::string labels;
  append_label(labels, name, value);
  return labels;
}

// One series for each reason, 0 included: a query can then sum over time, which a bit mask does not
// allow.
void add_clock_events(MetricText& text, const LabelledDevice& device, double mask) {
  static const auto reasons = [] {
    std::vector<std::pair<std::uint64_t, std::string>> labels;
    for (const ClockEventInfo& info : clock_events()) {
      labels.emplace_back(static_cast<std::uint64_t>(info.event), label("reason", info.reason));
    }
    return labels;
  }();
  for (const auto& [bit, labels] : reasons) {
    text.add(device.labels, labels, (static_cast<std::uint64_t>(mask) & bit) != 0 ? 1 : 0);
  }
}

void add_readings(MetricText& text, const Devices& devices) {
  for (const ReadingFamily& family : reading_families()) {
    text.begin_family(family.name,
                      family.type == ReadingType::Counter ? MetricType::Counter : MetricType::Gauge,
                      family_help(family.name));
    for (const LabelledDevice& device : devices) {
      for (const Reading reading : family.readings) {
        if (!is_shown(reading, device.kind)) continue;
        const auto value = device.status->readings.get(reading);
        if (!value) continue;
        if (reading == Reading::GpuClockEvents) {
          add_clock_events(text, device, *value);
        } else {
          const bool is_host = family.scope == ReadingScope::Host;
          text.add(is_host ? std::string_view() : device.labels, reading_info(reading).labels,
                   *value);
        }
      }
    }
  }
}

void add_machine(MetricText& text, const TelemetrySnapshot& snapshot) {
  std::string labels = label("version", version());
  append_label(labels, "build", build_name());
  text.begin_family(kBuildInfo);
  text.add("", labels, 1);

  labels = label("machine", snapshot.machine);
  if (snapshot.gpu_absent_reason) {
    append_label(labels, "gpu_absent_reason", *snapshot.gpu_absent_reason);
  }
  text.begin_family(kMachineInfo);
  text.add("", labels, 1);

  text.begin_family(kGpuExpected);
  text.add("", "", snapshot.expected_gpus);
}

// Facts that do not change while the driver runs are labels of one series with the value 1.
std::string info_labels(const DeviceIdentity& identity) {
  std::string labels = label("name", identity.device.model);
  const auto add = [&](std::string_view name, const std::optional<std::string>& value) {
    if (value) append_label(labels, name, *value);
  };
  add("driver_version", identity.driver_version);
  add("cuda_version", identity.cuda_version);
  add("pci_bus_id", identity.device.pci_address);
  if (const auto capability = identity.device.compute_capability) {
    add("compute_capability", fmt::format("{}.{}", *capability / 10, *capability % 10));
  }
  add("vbios", identity.vbios);
  add("serial", identity.serial);
  if (identity.numa_node) add("numa_node", std::to_string(*identity.numa_node));
  add("mig_profile", identity.mig_profile);
  return labels;
}

// A slice has no state of its own: only whole GPUs are up or down.
void add_presence(MetricText& text, const Devices& devices) {
  text.begin_family(kGpuInfo);
  for (const LabelledDevice& device : devices) {
    if (device.kind == SeriesKind::Cpu) continue;
    text.add(device.labels, info_labels(device.status->identity), 1);
  }
  text.begin_family(kGpuUp);
  for (const LabelledDevice& device : devices) {
    if (device.kind == SeriesKind::Gpu) text.add(device.labels, "", device.status->is_up ? 1 : 0);
  }
}

void add_xids(MetricText& text, const Devices& devices) {
  text.begin_family(kXidErrors);
  for (const LabelledDevice& device : devices) {
    if (device.kind != SeriesKind::Gpu) continue;
    std::map<std::uint32_t, std::uint64_t> counts;
    // XIDs are NVIDIA's: a zero for another vendor's device would be invented.
    if (device.status->identity.device.kind != DeviceKind::Rocm) {
      for (const std::uint32_t xid : kAlertedXids) counts[xid] = 0;
    }
    for (const auto& [xid, seen] : device.status->xids) counts[xid] = seen.count;
    for (const auto& [xid, count] : counts) {
      text.add(device.labels, label("xid", std::to_string(xid)), static_cast<double>(count));
    }
  }
  text.begin_family(kXidLast);
  for (const LabelledDevice& device : devices) {
    if (device.kind != SeriesKind::Gpu) continue;
    for (const auto& [xid, seen] : device.status->xids) {
      text.add(device.labels, label("xid", std::to_string(xid)), seen.last_unix_seconds);
    }
  }
}

void add_health(MetricText& text, const Devices& devices) {
  text.begin_family(kHealthState);
  for (const LabelledDevice& device : devices) {
    if (device.kind != SeriesKind::Gpu) continue;
    for (const HealthFinding& finding : device.status->health) {
      text.add(device.labels, label("watch", finding.watch), static_cast<double>(finding.state));
    }
  }
}

struct ProcessSeries {
  std::string labels;
  std::uint64_t bytes = 0;
};

// Series of a device must differ: a process that both computes and draws is listed twice with the
// same memory, and all processes of other pid namespaces have the pid 0.
std::vector<ProcessSeries> process_series(const std::vector<GpuProcess>& processes) {
  std::map<std::string, std::uint64_t> by_labels;
  for (const GpuProcess& process : processes) {
    if (!process.memory_bytes) continue;
    std::string labels = label("pid", std::to_string(process.pid));
    append_label(labels, "command", process.command);
    std::uint64_t& bytes = by_labels[labels];
    bytes =
        process.pid == 0 ? bytes + *process.memory_bytes : std::max(bytes, *process.memory_bytes);
  }
  std::vector<ProcessSeries> series;
  for (const auto& [labels, bytes] : by_labels) series.push_back({labels, bytes});
  std::stable_sort(series.begin(), series.end(),
                   [](const auto& left, const auto& right) { return left.bytes > right.bytes; });
  series.resize(std::min(series.size(), kProcessesMax));
  return series;
}

void add_processes(MetricText& text, const Devices& devices) {
  text.begin_family(kProcessMemory);
  for (const LabelledDevice& device : devices) {
    if (device.kind == SeriesKind::Cpu) continue;
    for (const ProcessSeries& process : process_series(device.status->processes)) {
      text.add(device.labels, process.labels, static_cast<double>(process.bytes));
    }
  }
}

void add_freshness(MetricText& text, const Devices& devices) {
  text.begin_family(kLastSuccess);
  for (const LabelledDevice& device : devices) {
    const auto at = device.status->last_success_unix_seconds;
    if (at) text.add(device.labels, "", *at);
  }
  text.begin_family(kReadingErrors);
  for (const LabelledDevice& device : devices) {
    for (const auto& [code, count] : device.status->error_counts) {
      text.add(device.labels, label("code", std::to_string(code)), static_cast<double>(count));
    }
  }
}

constexpr std::array<std::string_view, kTierCount> kTierNames{"fast", "medium", "slow"};

// Buckets are cumulative in the text but single counts in memory.
void add_ticks(MetricText& text, const CollectorStatus& collector) {
  text.begin_family(kTicks);
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    const auto& ticks = collector.ticks[tier];
    const std::string labels = label("tier", kTierNames[tier]);
    std::uint64_t below = 0;
    for (std::size_t bound = 0; bound < CollectorStatus::kTickBounds.size(); ++bound) {
      below += ticks.counts[bound];
      text.add_part("_bucket",
                    fmt::format(R"({},le="{}")", labels, CollectorStatus::kTickBounds[bound]),
                    static_cast<double>(below));
    }
    const auto all = static_cast<double>(below + ticks.counts.back());
    text.add_part("_bucket", labels + R"(,le="+Inf")", all);
    text.add_part("_sum", labels, ticks.seconds);
    text.add_part("_count", labels, all);
  }
  text.begin_family(kMissedTicks);
  for (std::size_t tier = 0; tier < kTierCount; ++tier) {
    text.add("", label("tier", kTierNames[tier]),
             static_cast<double>(collector.ticks[tier].missed));
  }
}

void add_calls(MetricText& text, const std::vector<CallCost>& calls) {
  text.begin_family(kCalls);
  for (const CallCost& cost : calls) {
    text.add("", label("call", cost.function), static_cast<double>(cost.calls));
  }
  text.begin_family(kCallSeconds);
  for (const CallCost& cost : calls) text.add("", label("call", cost.function), cost.seconds);
  text.begin_family(kCallErrors);
  for (const CallCost& cost : calls) {
    for (const auto& [code, count] : cost.errors) {
      std::string labels = label("call", cost.function);
      append_label(labels, "code", std::to_string(code));
      text.add("", labels, static_cast<double>(count));
    }
  }
}

void add_collector(MetricText& text, const CollectorStatus& collector) {
  add_ticks(text, collector);
  add_calls(text, collector.calls);
  text.begin_family(kRestarts);
  text.add("", "", collector.restarts);
  text.begin_family(kCpuSeconds);
  text.add("", "", collector.cpu_seconds);
  text.begin_family(kResidentBytes);
  text.add("", "", static_cast<double>(collector.rss_bytes));
}

}  // namespace

std::string prometheus_text(const TelemetrySnapshot& snapshot, MetricSet set) {
  const Devices devices = label_devices(snapshot);
  MetricText text("muster_");
  // About 90 series of 90 bytes for a GPU: one allocation instead of a dozen.
  text.reserve(16384 + devices.size() * 12288);
  add_machine(text, snapshot);
  add_presence(text, devices);
  add_readings(text, devices);
  add_xids(text, devices);
  add_health(text, devices);
  add_processes(text, devices);
  add_freshness(text, devices);
  add_collector(text, snapshot.collector);
  std::string whole = text.take();
  if (set == MetricSet::Dcgm) whole += dcgm_text(devices);
  return whole;
}

}  // namespace muster
