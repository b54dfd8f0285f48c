// A second set of names for the same readings. A reading whose meaning differs from DCGM's is left
// out rather than renamed.

#include "metrics/dcgm_names.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "metrics/metric_text.h"

namespace muster {
namespace {

struct DcgmField {
  std::string_view name;
  Reading reading;
  MetricType type;
  double scale;   // DCGM's unit for one of ours
  bool is_whole;  // an int64 field of DCGM's
  std::string_view help;
};

constexpr auto kGauge = MetricType::Gauge;
constexpr auto kCounter = MetricType::Counter;
constexpr double kMega = 1e-6;                     // Hz to MHz
constexpr double kMebi = 1.0 / (1024.0 * 1024.0);  // bytes to MiB
constexpr double kPercent = 100.0;
constexpr double kMilli = 1000.0;  // J to mJ

// clang-format off
constexpr std::array kFields{
    DcgmField{"DCGM_FI_DEV_SM_CLOCK", Reading::GpuClockSm, kGauge, kMega, true, "SM clock frequency (in MHz)."},
    DcgmField{"DCGM_FI_DEV_MEM_CLOCK", Reading::GpuClockMemory, kGauge, kMega, true, "Memory clock frequency (in MHz)."},
    DcgmField{"DCGM_FI_DEV_MEMORY_TEMP", Reading::GpuTemperatureMemory, kGauge, 1, true, "Memory temperature (in C)."},
    DcgmField{"DCGM_FI_DEV_GPU_TEMP", Reading::GpuTemperatureCore, kGauge, 1, true, "GPU temperature (in C)."},
    DcgmField{"DCGM_FI_DEV_POWER_USAGE", Reading::GpuPowerAverage, kGauge, 1, false, "Power draw (in W)."},
    DcgmField{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Reading::GpuEnergy, kCounter, kMilli, true, "Total energy consumption since boot (in mJ)."},
    DcgmField{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Reading::GpuPcieReplays, kCounter, 1, true, "Total number of PCIe retries."},
    DcgmField{"DCGM_FI_DEV_GPU_UTIL", Reading::GpuUtilization, kGauge, kPercent, true, "GPU utilization (in %)."},
    DcgmField{"DCGM_FI_DEV_MEM_COPY_UTIL", Reading::GpuMemoryBusy, kGauge, kPercent, true, "Memory utilization (in %)."},
    DcgmField{"DCGM_FI_DEV_FB_FREE", Reading::GpuMemoryFree, kGauge, kMebi, true, "Framebuffer memory free (in MiB)."},
    DcgmField{"DCGM_FI_DEV_FB_USED", Reading::GpuMemoryUsed, kGauge, kMebi, true, "Framebuffer memory used (in MiB)."},
    DcgmField{"DCGM_FI_DEV_FB_RESERVED", Reading::GpuMemoryReserved, kGauge, kMebi, true, "Framebuffer memory reserved (in MiB)."},
    DcgmField{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", Reading::GpuRemappedRowsUncorrectable, kCounter, 1, true, "Number of remapped rows for uncorrectable errors"},
    DcgmField{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", Reading::GpuRemappedRowsCorrectable, kCounter, 1, true, "Number of remapped rows for correctable errors"},
    DcgmField{"DCGM_FI_DEV_ROW_REMAP_FAILURE", Reading::GpuRemapFailed, kGauge, 1, true, "Whether remapping of rows has failed"},
    DcgmField{"DCGM_FI_PROF_SM_ACTIVE", Reading::GpuSmActive, kGauge, 1, false, "The ratio of cycles an SM has at least 1 warp assigned."},
    DcgmField{"DCGM_FI_PROF_SM_OCCUPANCY", Reading::GpuSmOccupancy, kGauge, 1, false, "The ratio of number of warps resident on an SM."},
    DcgmField{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Reading::GpuTensorActiveAny, kGauge, 1, false, "Ratio of cycles the tensor (HMMA) pipe is active."},
    DcgmField{"DCGM_FI_PROF_DRAM_ACTIVE", Reading::GpuDramActive, kGauge, 1, false, "Ratio of cycles the device memory interface is active sending or receiving data."},
    DcgmField{"DCGM_FI_PROF_PIPE_FP64_ACTIVE", Reading::GpuPipeFp64Active, kGauge, 1, false, "Ratio of cycles the fp64 pipes are active."},
    DcgmField{"DCGM_FI_PROF_PIPE_FP32_ACTIVE", Reading::GpuPipeFp32Active, kGauge, 1, false, "Ratio of cycles the fp32 pipes are active."},
    DcgmField{"DCGM_FI_PROF_PIPE_FP16_ACTIVE", Reading::GpuPipeFp16Active, kGauge, 1, false, "Ratio of cycles the fp16 pipes are active."},
};
// clang-format on

std::string host_name() {
  std::array<char, 256> name{};
  // The last byte stays zero: a name that is cut off is not terminated by the call.
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

const LabelledDevice* parent_of(const LabelledDevice& slice,
                                const std::vector<LabelledDevice>& devices) {
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const LabelledDevice& other) {
    return other.kind == SeriesKind::Gpu &&
           other.status->identity.device.uuid == slice.status->identity.parent;
  });
  return found == devices.end() ? nullptr : &*found;
}

// Of a slice: those of its GPU, and which slice it is.
std::string dcgm_labels(const LabelledDevice& device, const std::vector<LabelledDevice>& devices,
                        std::string_view host) {
  const auto* const parent =
      device.kind == SeriesKind::Slice ? parent_of(device, devices) : &device;
  const DeviceIdentity& board = (parent == nullptr ? device : *parent).status->identity;
  std::string labels;
  const auto index = std::to_string(board.device.index);
  append_label(labels, "gpu", index);
  if (board.device.uuid) append_label(labels, "UUID", *board.device.uuid);
  if (board.device.pci_address) append_label(labels, "pci_bus_id", *board.device.pci_address);
  append_label(labels, "device", "nvidia" + index);
  append_label(labels, "modelName", board.device.model);
  const DeviceIdentity& own = device.status->identity;
  if (own.mig_profile) append_label(labels, "GPU_I_PROFILE", *own.mig_profile);
  if (own.gpu_instance) append_label(labels, "GPU_I_ID", std::to_string(*own.gpu_instance));
  // Several compute instances may share a GPU instance, which the original cannot tell apart.
  if (own.parent) append_label(labels, "mig", std::to_string(own.device.index));
  append_label(labels, "Hostname", host);
  if (board.driver_version) append_label(labels, "DCGM_FI_DRIVER_VERSION", *board.driver_version);
  return labels;
}

// The gauge of the original: the code of the last XID, 0 before the first.
double last_xid(const DeviceStatus& status) {
  const auto last = std::max_element(
      status.xids.begin(), status.xids.end(), [](const auto& left, const auto& right) {
        return left.second.last_unix_seconds < right.second.last_unix_seconds;
      });
  return last == status.xids.end() ? 0 : last->first;
}

struct DcgmDevice {
  const LabelledDevice* device = nullptr;
  std::string labels;
};

std::vector<DcgmDevice> dcgm_devices(const std::vector<LabelledDevice>& devices) {
  const std::string host = host_name();
  std::vector<DcgmDevice> found;
  for (const LabelledDevice& device : devices) {
    const DeviceKind kind = device.status->identity.device.kind;
    if (device.kind == SeriesKind::Cpu || kind == DeviceKind::Rocm) continue;
    found.push_back({&device, dcgm_labels(device, devices, host)});
  }
  return found;
}

}  // namespace

std::string dcgm_text(const std::vector<LabelledDevice>& devices) {
  const auto found = dcgm_devices(devices);
  MetricText text("");
  for (const DcgmField& field : kFields) {
    text.begin_family(field.name, field.type, field.help);
    for (const DcgmDevice& device : found) {
      if (!is_shown(field.reading, device.device->kind)) continue;
      const auto value = device.device->status->readings.get(field.reading);
      if (!value) continue;
      const double scaled = *value * field.scale;
      text.add(device.labels, "", field.is_whole ? std::round(scaled) : scaled);
    }
  }
  text.begin_family("DCGM_FI_DEV_XID_ERRORS", kGauge, "Value of the last XID error encountered.");
  for (const DcgmDevice& device : found) {
    if (device.device->kind == SeriesKind::Gpu) {
      text.add(device.labels, "", last_xid(*device.device->status));
    }
  }
  return text.take();
}

}  // namespace muster
