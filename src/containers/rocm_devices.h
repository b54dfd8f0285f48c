#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace muster {

/// An AMD GPU as a container gets it.
struct RocmGpu {
  std::string render_file;  // "/dev/dri/renderD128"
};

/// What of AMD's driver is on this machine.
struct RocmHost {
  std::vector<RocmGpu> gpus;             // as ROCm numbers them
  std::vector<std::uint32_t> group_ids;  // that own the device files, ascending
};

/// Reads the kernel's compute topology; empty where there is no AMD driver or nothing readable.
///
/// root: the folder in front of /sys and /dev; "/" but for tests.
/// Source: Linux drivers/gpu/drm/amd/amdkfd/kfd_topology.c (nodes/*/properties: `simd_count` is 0
/// for a processor; `drm_render_minor`).
RocmHost find_rocm_gpus(const std::filesystem::path& root = "/");

}  // namespace muster
