#include "views/top_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "views/reading_text.h"

namespace muster {
namespace {

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

void add_findings(const TelemetrySnapshot& snapshot, HealthState state,
                  std::vector<TopNote>& notes) {
  const bool is_unfit = state == HealthState::Unfit;
  for (const auto& status : snapshot.devices) {
    for (const auto& finding : status.health) {
      const bool is_said_in_row = finding.watch == "present" && !status.is_up;
      if (finding.state != state || is_said_in_row) continue;
      notes.push_back(
          {fmt::format("{} {}: {}", status.name, is_unfit ? "unfit" : "warning", finding.sentence),
           {.role = is_unfit ? Role::Bad : Role::Warning, .is_bold = true}});
    }
  }
}

// The sum over whole GPUs, where any tells.
template <typename Value>
std::optional<double> sum_over_gpus(const TelemetrySnapshot& snapshot, Value&& value) {
  std::optional<double> sum;
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    if (!is_gpu(snapshot.devices[i]) || is_slice(snapshot.devices[i])) continue;
    if (const auto one = value(i)) sum = sum.value_or(0) + *one;
  }
  return sum;
}

std::string cores_text(double cores) { return fmt::format("{:.2f} % of a core", cores * 100); }

std::string sampler_text(const TopData& data) {
  const auto& collector = data.snapshot.collector;
  std::string text;
  if (data.sampler_cores) text += " " + cores_text(*data.sampler_cores);
  if (collector.rss_bytes > 0) text += " " + human_bytes(collector.rss_bytes);
  std::uint64_t missed = 0;
  for (const auto& ticks : collector.ticks) missed += ticks.missed;
  if (missed > 0) text += fmt::format(" {} missed", missed);
  if (collector.restarts > 0) text += " " + counted(collector.restarts, "restart");
  return text.empty() ? "" : "sampler" + text;
}

std::string memory_text(const TelemetrySnapshot& snapshot) {
  for (const auto& status : snapshot.devices) {
    const auto size = status.readings.get(Reading::HostMemorySize);
    const auto available = status.readings.get(Reading::HostMemoryAvailable);
    if (size && available) return "host mem " + gigabytes_pair(*size - *available, *size) + " GB";
  }
  return "";
}

}  // namespace

std::vector<TopNote> top_notes(const TopData& data) {
  std::vector<TopNote> notes;
  const auto& snapshot = data.snapshot;
  add_findings(snapshot, HealthState::Unfit, notes);
  add_findings(snapshot, HealthState::Warning, notes);
  for (std::size_t i = 0; i < snapshot.devices.size(); ++i) {
    const auto& why = data.trends[i].why_slow;
    if (why.empty()) continue;
    notes.push_back({snapshot.devices[i].name + ": " + why, {.role = Role::Warning}});
  }
  if (snapshot.gpu_absent_reason) {
    notes.push_back({"no GPU: " + *snapshot.gpu_absent_reason, {.role = Role::Quiet}});
  }
  return notes;
}

std::vector<std::string> machine_totals(const TelemetrySnapshot& snapshot,
                                        const std::vector<Trend>& trends) {
  std::size_t count = 0;
  std::size_t up = 0;
  std::size_t busy_count = 0;
  double busy = 0;
  for (const auto& status : snapshot.devices) {
    if (!is_gpu(status) || is_slice(status)) continue;
    ++count;
    if (status.is_up) ++up;
    if (const auto share = busy_share(status)) {
      busy += *share;
      ++busy_count;
    }
  }
  const auto all = std::max<std::size_t>(count, snapshot.expected_gpus);
  std::vector<std::string> pieces;
  pieces.push_back(up == all ? counted(all, "GPU")
                             : fmt::format("{} of {} up", up, counted(all, "GPU")));
  if (busy_count > 0) {
    pieces.push_back(fmt::format("busy {:.0f} %", busy / static_cast<double>(busy_count) * 100));
  }
  const auto use = [&](std::size_t i) { return memory_use(snapshot.devices[i]); };
  const auto used = sum_over_gpus(snapshot, [&](std::size_t i) { return use(i).used; });
  const auto size = sum_over_gpus(snapshot, [&](std::size_t i) { return use(i).size; });
  if (used && size) pieces.push_back("mem " + gigabytes_pair(used, size) + " GB");
  const auto watts = sum_over_gpus(snapshot, [&](std::size_t i) { return trends[i].watts; });
  if (watts) pieces.push_back(whole_text(watts) + " W");
  return pieces;
}

std::vector<std::string> machine_facts(const TopData& data) {
  std::vector<std::string> pieces;
  const auto& devices = data.snapshot.devices;
  const auto with_driver = std::find_if(devices.begin(), devices.end(), [](const auto& status) {
    return is_gpu(status) && status.identity.driver_version;
  });
  if (with_driver != devices.end()) {
    pieces.push_back("driver " + *with_driver->identity.driver_version);
  }
  if (auto host = memory_text(data.snapshot); !host.empty()) pieces.push_back(std::move(host));
  if (auto cost = sampler_text(data); !cost.empty()) pieces.push_back(std::move(cost));
  return pieces;
}

std::string device_details(const DeviceStatus& status) {
  const auto& identity = status.identity;
  const auto& readings = status.readings;
  std::vector<std::string> pieces;
  if (identity.device.uuid) pieces.push_back(*identity.device.uuid);
  if (identity.device.pci_address) pieces.push_back(*identity.device.pci_address);
  const auto generation = readings.get(Reading::GpuPcieGeneration);
  const auto lanes = readings.get(Reading::GpuPcieLanes);
  if (generation && lanes)
    pieces.push_back(fmt::format("PCIe {:.0f} x{:.0f}", *generation, *lanes));
  if (const auto links = readings.get(Reading::GpuNvlinkLinksActive)) {
    pieces.push_back(counted(static_cast<std::size_t>(*links), "NVLink"));
  }
  const auto corrected = readings.get(Reading::GpuEccCorrectedVolatile);
  const auto uncorrected = readings.get(Reading::GpuEccUncorrectedVolatile);
  if (corrected && uncorrected) {
    pieces.push_back(fmt::format("ECC {:.0f} corrected {:.0f} not", *corrected, *uncorrected));
  }
  std::uint64_t xids = 0;
  for (const auto& [code, count] : status.xids) xids += count.count;
  if (xids > 0) pieces.push_back(counted(xids, "XID"));
  if (identity.has_mps_server) pieces.push_back("MPS");
  const bool is_hidden = identity.device.kind == DeviceKind::Cuda && !identity.cuda_ordinal &&
                         !identity.is_mig_on.value_or(false);
  if (is_hidden) pieces.push_back("hidden from CUDA");
  return fmt::format("{}", fmt::join(pieces, "  "));
}

}  // namespace muster
