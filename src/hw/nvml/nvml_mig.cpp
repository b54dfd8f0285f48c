// Slices of a GPU. A slice inherits what it shares with its GPU, and everything that would
// otherwise be counted twice is taken away: serial number, PCI address, memory. The name of the
// profile comes from the driver where it writes it, and otherwise from the sizes by NVIDIA's own
// rounding, since users and schedulers know a slice by that name. Indices without a slice are
// normal and skipped.

#include "hw/nvml/nvml_mig.h"

#include <fmt/format.h>

#include <cmath>

#include "hw/nvml/nvml_memory.h"
#include "hw/nvml/nvml_processes.h"

namespace muster {
namespace {

// "NVIDIA H200 MIG 1g.18gb" ends with the profile; not every driver writes it.
std::optional<std::string> profile_in_name(const std::string& name) {
  constexpr std::string_view kMark = " MIG ";
  const auto mark = name.rfind(kMark);
  if (mark == std::string::npos) return std::nullopt;
  return name.substr(mark + kMark.size());
}

NvmlSlice read_slice(const NvmlFunctions& nvml, const NvmlGpu& gpu, NvmlDevice handle,
                     NvmlCaller& call) {
  NvmlSlice slice{handle, gpu.identity, nullptr};
  auto& identity = slice.identity;
  auto& device = identity.device;
  identity.parent = gpu.identity.device.uuid.value_or(
      gpu.identity.device.pci_address.value_or(gpu.identity.device.name()));
  identity.is_mig_on.reset();
  identity.serial.reset();
  identity.vbios.reset();
  identity.driver_index.reset();
  identity.multiprocessor_count.reset();
  device.pci_address.reset();
  device.memory_total_bytes.reset();
  device.memory_free_bytes.reset();
  device.uuid = nvml_text(call, nvml.uuid, handle);
  device.model = nvml_text(call, nvml.name, handle).value_or(device.model);
  NvmlAttributes attributes{};
  if (call(nvml.attributes, handle, &attributes) == kNvmlSuccess) {
    identity.multiprocessor_count = attributes.multiprocessor_count;
    device.memory_total_bytes = attributes.memory_mib << 20;
    if (const auto memory = gpu.identity.device.memory_total_bytes) {
      identity.mig_profile = mig_profile_name(attributes, *memory);
    }
  }
  if (const auto profile = profile_in_name(device.model)) identity.mig_profile = profile;
  unsigned instance = 0;
  if (call(nvml.gpu_instance, handle, &instance) == kNvmlSuccess) {
    identity.gpu_instance = instance;
  }
  if (call(nvml.compute_instance, handle, &instance) == kNvmlSuccess) {
    identity.compute_instance = instance;
  }
  return slice;
}

class SliceSampler final : public DeviceSampler {
 public:
  SliceSampler(std::shared_ptr<const NvmlLibrary> library, NvmlSlice slice,
               const std::filesystem::path& root)
      : library_(std::move(library)), slice_(std::move(slice)), processes_(root) {}

  const DeviceIdentity& identity() const override { return slice_.identity; }

  void sample(TierSet due, CallWatch& watch, DeviceSample& sample) override {
    NvmlVisit visit(*library_, watch, sample);
    if (due.test(static_cast<std::size_t>(Tier::Medium))) {
      memory_.read(visit, slice_.handle);
      if (slice_.gpm != nullptr) slice_.gpm->read(visit);
    }
    if (due.test(static_cast<std::size_t>(Tier::Slow))) processes_.read(visit, slice_.handle);
  }

  std::optional<double> energy_joules(CallWatch& /*watch*/) override { return std::nullopt; }

 private:
  std::shared_ptr<const NvmlLibrary> library_;
  NvmlSlice slice_;
  NvmlMemoryReader memory_;
  NvmlProcesses processes_;
};

}  // namespace

std::string mig_profile_name(const NvmlAttributes& attributes, std::uint64_t gpu_memory_bytes) {
  constexpr double kParts = 8;
  constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
  const double share =
      static_cast<double>(attributes.memory_mib << 20) / static_cast<double>(gpu_memory_bytes);
  const double total = std::ceil(static_cast<double>(gpu_memory_bytes) / kGibibyte);
  const auto gigabytes = std::lround(std::ceil(share * kParts) / kParts * total);
  const auto profile = fmt::format("{}g.{}gb", attributes.gpu_instance_slices, gigabytes);
  return attributes.compute_instance_slices == attributes.gpu_instance_slices
             ? profile
             : fmt::format("{}c.{}", attributes.compute_instance_slices, profile);
}

std::vector<NvmlSlice> list_nvml_slices(const std::shared_ptr<const NvmlLibrary>& library,
                                        const NvmlGpu& gpu, NvmlCaller& call) {
  const auto& nvml = library->functions();
  std::vector<NvmlSlice> slices;
  unsigned count_max = 0;
  if (gpu.handle == nullptr || !gpu.identity.is_mig_on.value_or(false) ||
      call(nvml.mig_count, gpu.handle, &count_max) != kNvmlSuccess) {
    return slices;
  }
  // A GPU has at most seven slices; an index without one answers "not found".
  constexpr unsigned kSliceMax = 64;
  for (unsigned index = 0; index < count_max && index < kSliceMax; ++index) {
    NvmlDevice handle = nullptr;
    if (call(nvml.mig_handle, gpu.handle, index, &handle) != kNvmlSuccess) continue;
    slices.push_back(read_slice(nvml, gpu, handle, call));
    auto& slice = slices.back();
    slice.identity.device.index = static_cast<std::uint32_t>(slices.size() - 1);
    if (slice.identity.gpu_instance) {
      slice.gpm = NvmlGpm::open(library, gpu.handle, slice.identity.gpu_instance, call);
    }
  }
  return slices;
}

std::unique_ptr<DeviceSampler> make_nvml_slice_sampler(std::shared_ptr<const NvmlLibrary> library,
                                                       NvmlSlice slice,
                                                       const std::filesystem::path& root) {
  return std::make_unique<SliceSampler>(std::move(library), std::move(slice), root);
}

}  // namespace muster
