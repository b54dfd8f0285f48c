#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "spec/machine.h"

namespace muster {

/// How the GPUs of a board reach each other beside PCIe.
enum class GpuFabric : std::uint8_t {
  None,
  Bridges,  // between some of them: the machine tells which, not the GPU
  Mesh,     // one link between every two of a board
  Switch,   // every one reaches every other with all its links
};

/// What is known about a type of GPU. A figure that its data sheet does not state is absent.
struct GpuFacts {
  std::string_view name;         // "H100-80G", as machines are written
  std::string_view driver_name;  // "NVIDIA H100 80GB HBM3", as the driver tells it
  DeviceKind kind = DeviceKind::Cuda;
  std::uint64_t memory_bytes = 0;  // the driver's total, or the data sheet's GB of 10^9 bytes
  std::optional<double> flops_per_second;         // dense, fp16 or bf16 with fp32 sums
  std::optional<double> memory_bytes_per_second;  // peak
  GpuFabric fabric = GpuFabric::None;
  std::uint32_t link_count = 0;        // NVLink or Infinity Fabric; 0: none
  double link_bytes_per_second = 0.0;  // of one link in one direction
  std::uint32_t pcie_generation = 0;
  std::string_view source = {};  // data sheet or white paper, and its date
};

/// All that is known, by vendor and age.
///
/// Source: each row's; memory: `memory.total` that nvidia-smi or rocm-smi prints, which leaves out
/// what ECC takes; links: NCCL 2.30, src/graph/topo.h (069a3d4f), SM*_NVLINK_BW.
std::span<const GpuFacts> gpu_catalogue();

/// The GPU of a name, whatever its case and dashes; the memory may be left out where one size is
/// made ("h200", "L40S").
///
/// Errors: NotFound with the nearest name; InvalidArgument when several sizes are meant.
Result<const GpuFacts*> find_gpu(std::string_view name);

/// The GPU of a driver's name; nullptr when it is not known.
const GpuFacts* find_gpu_by_driver_name(std::string_view driver_name);

DeviceClass device_class(const GpuFacts& gpu);

/// What NCCL assumes for links that no data sheet gives, bytes a second in one direction.
///
/// Source: NCCL, src/graph/topo.h (069a3d4f): PCI_BW 12 is PCIe 3.0 x16, doubled with each
/// generation; SKL_QPI_BW; NET_BW, a network of 100 Gbit/s; SM80_NVLINK_BW where a GPU is unknown.
inline constexpr double kPcie3BytesPerSecond = 12e9;
inline constexpr double kSocketBytesPerSecond = 10e9;
inline constexpr double kNetworkBytesPerSecond = 12e9;
inline constexpr double kNvLinkBytesPerSecond = 20e9;

/// PCIe x16 of a generation; 0 counts as 3.
double pcie_bytes_per_second(std::uint32_t generation);

}  // namespace muster
