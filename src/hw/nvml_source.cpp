#include <charconv>

#include "base/file.h"
#include "base/text.h"
#include "hw/device_sources.h"
#include "hw/nvml_events.h"
#include "hw/nvml_identity.h"
#include "hw/nvml_library.h"
#include "hw/nvml_links.h"
#include "hw/nvml_mig.h"
#include "hw/nvml_sampler.h"
#include "hw/visible_devices.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// The control daemon of NVIDIA's Multi-Process Service is there while the process of its pid file
// lives. Source: NVIDIA, "Multi-Process Service", environment variables and log files.
bool has_mps_daemon(const NvmlOptions& options) {
  const fs::path folder = options.mps_pipe_directory.value_or("/tmp/nvidia-mps");
  const auto text =
      read_file(options.root / folder.relative_path() / "nvidia-cuda-mps-control.pid", 64);
  if (!text) return false;
  const auto trimmed = trim(*text);
  std::uint32_t pid = 0;
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), pid);
  if (error != std::errc() || end != trimmed.data() + trimmed.size() || pid == 0) return false;
  std::error_code ignored;
  return fs::exists(options.root / "proc" / std::to_string(pid), ignored);
}

// GPUs and slices as they will be listed.
struct Found {
  std::vector<NvmlGpu> gpus;
  std::vector<std::vector<NvmlSlice>> slices;  // of each GPU
};

void number_for_cuda(Found& found, const NvmlOptions& options) {
  std::vector<DeviceIdentity> identities;
  std::vector<DeviceIdentity*> places;
  for (std::size_t i = 0; i < found.gpus.size(); ++i) {
    places.push_back(&found.gpus[i].identity);
    for (auto& slice : found.slices[i]) places.push_back(&slice.identity);
  }
  for (const auto* place : places) identities.push_back(*place);
  const auto ordinals =
      cuda_ordinals(identities, options.cuda_visible_devices, options.cuda_device_order);
  for (std::size_t i = 0; i < places.size(); ++i) places[i]->cuda_ordinal = ordinals[i];
}

}  // namespace

Result<DeviceSource> open_nvml(const NvmlOptions& options, CallWatch& watch) {
  const auto library = MUSTER_TRY(NvmlLibrary::open(options.libraries, watch));
  const auto& nvml = library->functions();
  NvmlCaller call(watch);
  Found found;
  found.gpus = MUSTER_TRY(list_nvml_gpus(*library, call, options.root));
  const bool has_mps = has_mps_daemon(options);
  for (auto& gpu : found.gpus) {
    gpu.identity.has_mps_server = has_mps;
    found.slices.push_back(list_nvml_slices(*library, gpu, call));
  }
  number_for_cuda(found, options);

  DeviceSource source;
  std::vector<unsigned> link_counts;
  std::vector<NvmlEventDevice> event_devices;
  for (std::size_t i = 0; i < found.gpus.size(); ++i) {
    const auto& gpu = found.gpus[i];
    link_counts.push_back(nvlink_count(nvml, gpu.handle, call));
    if (gpu.handle != nullptr) {
      event_devices.push_back({gpu.handle, static_cast<std::uint32_t>(source.samplers.size())});
    }
    source.samplers.push_back(
        make_nvml_gpu_sampler(library, gpu, link_counts.back(), options.root, call));
    for (const auto& slice : found.slices[i]) {
      source.samplers.push_back(make_nvml_slice_sampler(library, slice, options.root, call));
    }
  }
  source.links = read_nvml_links(nvml, found.gpus, link_counts, call);
  source.events = make_nvml_events(library, std::move(event_devices), call);
  source.keep_alive = std::const_pointer_cast<NvmlLibrary>(library);
  return source;
}

}  // namespace muster
