#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Standin: a stand-in for a GPU, for tests (spec/standin_device.h).
enum class DeviceKind : std::uint8_t { Cpu, Cuda, Rocm, Mps, Simulated, Standin };
inline constexpr DeviceKind kDeviceKindLast = DeviceKind::Standin;

/// "cpu", "cuda", "rocm", "mps", "sim", "standin".
std::string_view device_kind_name(DeviceKind kind);

/// Whether the engine computes on it as on a GPU, with the weights in a memory of the device's own.
bool runs_as_gpu(DeviceKind kind);

/// One device as it is found or asked for. Identity is `uuid` or `pci_address`; the index is shown.
struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  std::uint32_t index = 0;
  std::string model;                                // "AMD EPYC", "NVIDIA H200"
  std::optional<std::string> uuid;                  // "GPU-…" for NVIDIA
  std::optional<std::string> pci_address;           // "00000000:1B:00.0"
  std::optional<std::uint64_t> memory_total_bytes;  // what this process may use (the cgroup counts)
  std::optional<std::uint64_t> memory_free_bytes;   // of a GPU, when it was looked at
  bool has_unified_memory = false;                  // of a GPU: it is part of the machine's
  std::vector<std::uint32_t> cpus;                  // Cpu: the logical CPUs it runs on
  std::optional<std::uint32_t> compute_capability;  // Cuda: 86 for 8.6
  std::optional<std::uint32_t> slice;               // Cuda: which MIG slice of GPU `index` this is
  std::string hidden_by;    // Cuda: "CUDA_VISIBLE_DEVICES=1" when that leaves it out; else empty
  std::string lost_reason;  // Cuda: what its driver says of one that is lost; else empty

  /// "cpu:0", "cuda:1"; a MIG slice as NVIDIA's container tools write it: "cuda:1:0".
  std::string name() const;

  /// A worker can be given it: it is neither hidden nor lost.
  bool is_usable() const { return hidden_by.empty() && lost_reason.empty(); }
};

/// What is on this machine.
struct Inventory {
  std::string cpu_model;                    // "AMD EPYC", as the kernel prints it
  std::vector<std::uint32_t> allowed_cpus;  // the affinity mask of this process
  std::uint32_t core_count = 0;             // physical cores among the allowed CPUs
  std::uint32_t numa_node_count = 1;
  std::vector<std::string> instruction_sets;  // of those that matter to speed: "avx2", "avx512f", …
  std::uint64_t memory_total_bytes = 0;       // of the machine
  std::optional<std::uint64_t> memory_limit_bytes;  // tightest cgroup above this process
  std::optional<std::uint64_t>
      memory_available_bytes;             // what a new program can have, within the cgroups
  std::optional<double> cpu_limit_cores;  // the same for its CPU quota; `cpus` keeps to it
  std::vector<Device> cpus;               // a NUMA node each
  std::vector<Device> gpus;               // in PCI order; the slices of one that is split
  std::vector<Device> standins;           // none where their library is not there
  std::optional<std::string>
      gpu_absent_reason;  // why `gpus` is empty: "no NVIDIA driver (libnvidia-ml.so.1)"
};

}  // namespace muster
