#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "spec/telemetry.h"

namespace muster {

/// What /proc/PID/fdinfo/N tells of an open GPU.
struct DrmClient {
  std::string pci;       // "0000:c1:00.0"
  std::uint64_t id = 0;  // one client may be open several times
  std::uint64_t vram_bytes = 0;
  std::uint64_t gtt_bytes = 0;
};

/// nullopt: it is no file of amdgpu. Source: Linux, Documentation/gpu/drm-usage-stats.rst.
std::optional<DrmClient> parse_drm_fdinfo(std::string_view text);

/// The processes on every AMD GPU of this machine, looked up once for all of them: those that
/// compute by KFD, whose memory it tells by GPU, and those that draw by the files they hold open.
///
/// Threads: thread-safe. Cost: a walk of /proc, at most every half second.
/// Source: Linux, drivers/gpu/drm/amd/amdkfd/kfd_process.c (proc/PID/vram_GPUID, bytes).
class AmdProcesses {
 public:
  explicit AmdProcesses(std::filesystem::path root) : root_(std::move(root)) {}

  /// Of the GPU at a PCI address "0000:c1:00.0" whose KFD ids are these. has_unified_memory: GTT
  /// counts as memory of the GPU.
  std::vector<GpuProcess> list(const std::string& pci, const std::vector<std::uint64_t>& gpu_ids,
                               bool has_unified_memory);

 private:
  struct Client {
    std::uint32_t pid = 0;
    DrmClient client;
  };
  struct Compute {
    std::uint32_t pid = 0;
    std::map<std::uint64_t, std::uint64_t> vram_bytes;  // by KFD id
  };

  void refresh() MUSTER_REQUIRES(mutex_);
  void refresh_compute() MUSTER_REQUIRES(mutex_);
  void refresh_clients() MUSTER_REQUIRES(mutex_);
  void add_clients_of(std::uint32_t pid) MUSTER_REQUIRES(mutex_);
  std::string command_of(std::uint32_t pid) const;

  std::filesystem::path root_;
  Mutex mutex_;
  std::optional<TimePoint> refreshed_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Compute> compute_ MUSTER_GUARDED_BY(mutex_);
  std::vector<Client> clients_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
