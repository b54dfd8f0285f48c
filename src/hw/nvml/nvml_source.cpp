// Puts a machine's GPUs together from what was opened: samplers first, then events, which carry a
// sampler's index, and links, which go by GPU. CUDA's ordinals are worked out over GPUs that opened
// only, as CUDA does not count the others. The library and the calls that have not returned are
// kept alive as long as the source: unloading a library under a thread that is inside it would
// crash.

#include <charconv>

#include "base/file.h"
#include "base/text.h"
#include "hw/device_sources.h"
#include "hw/nvml/nvml_events.h"
#include "hw/nvml/nvml_library.h"
#include "hw/nvml/nvml_opening.h"
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

// As CUDA numbers them now: it does not count a GPU that cannot be opened, so that those behind one
// that is lost have other numbers than before. Which of them may work is cli/lost_gpus.h's.
void number_for_cuda(std::vector<OpenedNvmlGpu>& gpus, const NvmlOptions& options) {
  std::vector<DeviceIdentity> identities;
  std::vector<DeviceIdentity*> places;
  for (auto& opened : gpus) {
    if (opened.gpu.handle == nullptr) continue;
    places.push_back(&opened.gpu.identity);
    for (auto& slice : opened.slices) places.push_back(&slice.identity);
  }
  for (const auto* place : places) identities.push_back(*place);
  const auto ordinals =
      cuda_ordinals(identities, options.cuda_visible_devices, options.cuda_device_order);
  for (std::size_t i = 0; i < places.size(); ++i) places[i]->cuda_ordinal = ordinals[i];
}

// What the samplers need to the end, and calls that have not returned.
struct KeptAlive {
  std::shared_ptr<const NvmlLibrary> library;
  std::shared_ptr<void> waiting;
};

}  // namespace

Result<DeviceSource> open_nvml(const NvmlOptions& options, CallWatch& watch) {
  const auto library = MUSTER_TRY(NvmlLibrary::open(options.libraries, watch));
  NvmlCaller call(watch);
  const auto count = MUSTER_TRY(count_nvml_gpus(*library, call));
  auto opened = open_nvml_gpus(library, count, options.root, watch);
  const bool has_mps = has_mps_daemon(options);
  for (auto& [gpu, parts, link_ends, slices] : opened.gpus) {
    gpu.identity.has_mps_server = has_mps;
    for (auto& slice : slices) slice.identity.has_mps_server = has_mps;
  }
  number_for_cuda(opened.gpus, options);

  DeviceSource source;
  std::vector<NvmlGpu> gpus;
  std::vector<std::vector<NvmlLinkEnd>> all_link_ends;
  std::vector<NvmlEventDevice> event_devices;
  for (auto& [gpu, parts, link_ends, slices] : opened.gpus) {
    if (gpu.handle != nullptr) {
      event_devices.push_back({gpu.handle, static_cast<std::uint32_t>(source.samplers.size())});
    }
    source.samplers.push_back(make_nvml_gpu_sampler(library, gpu, std::move(parts), options.root));
    for (auto& slice : slices) {
      source.samplers.push_back(make_nvml_slice_sampler(library, std::move(slice), options.root));
    }
    gpus.push_back(gpu);
    all_link_ends.push_back(std::move(link_ends));
  }
  source.links = join_nvml_links(library->functions(), gpus, all_link_ends, call);
  source.events = make_nvml_events(library, std::move(event_devices), call);
  source.keep_alive = std::make_shared<KeptAlive>(KeptAlive{library, opened.waiting});
  return source;
}

}  // namespace muster
