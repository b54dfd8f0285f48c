// What is worth a sentence: first what is wrong, then what is slow, and of watching itself only
// what is out of the ordinary.
// A device that is down says so in its row, and is not repeated here. The machine's sums count
// whole GPUs only: slices are parts of them and would count twice. For CPUs the mean is weighted
// by cores, as a socket of 64 says more than one of 8.
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

// One call per state puts all unfit findings before all warnings, whatever the devices' order.
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

// Watching costs next to nothing; where it does not, or where readings are missing, it says so.
std::string sampler_text(const TopData& data) {
  constexpr double kMuch = 0.05;  // of a core
  const auto& collector = data.snapshot.collector;
  std::vector<std::string> pieces;
  if (data.sampler_cores.value_or(0) > kMuch) {
    pieces.push_back(fmt::format("{:.0f} % of a core", *data.sampler_cores * 100));
  }
  std::uint64_t missed = 0;
  for (const auto& ticks : collector.ticks) missed += ticks.missed;
  if (missed > 0) pieces.push_back(fmt::format("{} readings missed", missed));
  if (collector.restarts > 0) pieces.push_back(counted(collector.restarts, "restart"));
  return pieces.empty() ? "" : fmt::format("sampler: {}", fmt::join(pieces, ", "));
}

// What the machine's programs hold, page cache not counted.
std::string memory_text(const TelemetrySnapshot& snapshot, std::string_view name) {
  for (const auto& status : snapshot.devices) {
    const auto size = status.readings.get(Reading::HostMemorySize);
    const auto available = status.readings.get(Reading::HostMemoryAvailable);
    if (!size || !available) continue;
    const auto used = *size - std::min(*size, *available);
    return fmt::format("{} {} GB", name, gigabytes_pair(used, *size));
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

namespace {

// "2 CPUs, 16 cores", how busy they are in the mean of their cores, and their memory.
std::vector<std::string> cpu_totals(const TelemetrySnapshot& snapshot) {
  std::size_t count = 0;
  std::size_t cores = 0;
  double busy = 0;
  double busy_cores = 0;
  for (const auto& status : snapshot.devices) {
    if (is_gpu(status)) continue;
    ++count;
    cores += status.identity.device.cpus.size();
    const auto its =
        static_cast<double>(std::max<std::size_t>(status.identity.device.cpus.size(), 1));
    if (const auto share = busy_share(status)) {
      busy += *share * its;
      busy_cores += its;
    }
  }
  std::vector<std::string> pieces{counted(count, "CPU")};
  if (cores > 0) pieces.front() += ", " + counted(cores, "core");
  if (busy_cores > 0) pieces.push_back(fmt::format("busy {:.0f} %", busy / busy_cores * 100));
  if (auto memory = memory_text(snapshot, "mem"); !memory.empty()) {
    pieces.push_back(std::move(memory));
  }
  return pieces;
}

}  // namespace

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
  if (all == 0) return cpu_totals(snapshot);
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

// A row that is too narrow drops pieces from the right, so the driver comes first.
std::vector<std::string> machine_facts(const TopData& data) {
  std::vector<std::string> pieces;
  const auto& devices = data.snapshot.devices;
  const auto with_driver = std::find_if(devices.begin(), devices.end(), [](const auto& status) {
    return is_gpu(status) && status.identity.driver_version;
  });
  if (with_driver != devices.end()) {
    pieces.push_back("driver " + *with_driver->identity.driver_version);
  }
  const bool has_gpu = std::any_of(devices.begin(), devices.end(), is_gpu);
  auto host = memory_text(data.snapshot, "host mem");
  if (has_gpu && !host.empty()) pieces.push_back(std::move(host));
  if (auto cost = sampler_text(data); !cost.empty()) pieces.push_back(std::move(cost));
  return pieces;
}

std::string device_details(const DeviceStatus& status) {
  const auto& identity = status.identity;
  const auto& readings = status.readings;
  std::vector<std::string> pieces;
  if (identity.device.uuid) pieces.push_back(*identity.device.uuid);
  if (identity.device.pci_address) pieces.push_back(*identity.device.pci_address);
  if (!is_gpu(status)) {
    pieces.push_back(identity.device.model);
    pieces.push_back(counted(identity.device.cpus.size(), "core"));
    if (identity.numa_node) pieces.push_back(fmt::format("NUMA node {}", *identity.numa_node));
  }
  const auto generation = readings.get(Reading::GpuPcieGeneration);
  const auto lanes = readings.get(Reading::GpuPcieLanes);
  if (generation && lanes)
    pieces.push_back(fmt::format("PCIe {:.0f} x{:.0f}", *generation, *lanes));
  if (const auto links = readings.get(Reading::GpuNvlinkLinksActive)) {
    pieces.push_back(counted(static_cast<std::size_t>(*links), "NVLink"));
  }
  const auto corrected = readings.get(Reading::GpuEccCorrectedVolatile);
  const auto uncorrected = readings.get(Reading::GpuEccUncorrectedVolatile);
  if (corrected.value_or(0) > 0 || uncorrected.value_or(0) > 0) {
    pieces.push_back(fmt::format("ECC errors: {:.0f} corrected, {:.0f} not", corrected.value_or(0),
                                 uncorrected.value_or(0)));
  }
  std::uint64_t xids = 0;
  for (const auto& [code, count] : status.xids) xids += count.count;
  if (xids > 0) pieces.push_back(counted(xids, "XID"));
  if (identity.has_mps_server) pieces.push_back("MPS");
  const bool is_hidden = identity.device.kind == DeviceKind::Cuda && !identity.cuda_ordinal &&
                         status.lost_reason.empty() && !identity.is_mig_on.value_or(false);
  if (is_hidden) pieces.push_back("hidden from CUDA");
  return fmt::format("{}", fmt::join(pieces, "  "));
}

}  // namespace muster
