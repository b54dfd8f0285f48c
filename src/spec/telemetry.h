#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "spec/device.h"
#include "spec/machine.h"
#include "spec/reading.h"

namespace muster {

/// What of a watched device does not change while its driver runs. Absent: the driver does not
/// tell.
struct DeviceIdentity {
  Device device;  // kind, index in PCI order, model, UUID, PCI address, memory, compute capability
  std::optional<std::string> driver_version;  // "580.95.05"
  std::optional<std::string> cuda_version;    // newest that the driver can run: "13.0"
  std::optional<std::string> vbios;
  std::optional<std::string> serial;
  std::optional<std::uint32_t> numa_node;
  std::optional<std::uint32_t> multiprocessor_count;
  std::optional<bool> is_ecc_on;
  std::optional<bool> is_mig_on;
  std::optional<bool> is_persistent;  // persistence mode
  std::optional<std::uint32_t>
      compute_mode;  // nvmlComputeMode_t: 0 default, 2 prohibited, 3 exclusive
  std::optional<std::uint32_t> driver_index;  // as the driver counts: NVML's index, drm card number
  /// What a CUDA program started from here calls it; nullopt: CUDA_VISIBLE_DEVICES hides it.
  std::optional<std::uint32_t> cuda_ordinal;
  std::optional<std::string> parent;       // a MIG slice's GPU, by UUID
  std::optional<std::string> mig_profile;  // "1g.18gb"
  std::optional<std::uint32_t> gpu_instance;
  std::optional<std::uint32_t> compute_instance;
  bool has_mps_server = false;      // the control daemon's pid file names a live process
  bool has_unified_memory = false;  // it shares the machine's memory
  bool is_barred = false;           // its driver lists it and does not let this user open it
};

/// "cuda:3", "cpu:0"; "cuda:3:0" for the first MIG slice of a GPU, as NVIDIA's container tools
/// write it. A slice's Device::index is its number within the GPU.
std::string shown_name(const DeviceIdentity& identity, const std::vector<DeviceIdentity>& all);

enum class GpuProcessKind : std::uint8_t { Compute, Graphics, Mps };

struct GpuProcess {
  std::uint32_t pid = 0;  // in the sampler's own pid namespace; 0: it is of another
  std::string command;    // /proc/PID/comm, may hold any bytes; empty: not known
  std::optional<std::uint64_t> memory_bytes;
  GpuProcessKind kind = GpuProcessKind::Compute;
};

/// A process of this machine, as its kernel tells of it.
struct HostProcess {
  std::uint32_t pid = 0;
  std::string command;             // /proc/PID/comm, may hold any bytes
  std::optional<double> cores;     // CPU time by time since the last look: 1 is a whole core
  std::uint64_t memory_bytes = 0;  // resident, memory shared with others included
  std::string device = {};         // of a worker of ours: "cpu:1"; empty: it is none
  std::string models = {};         // that it has loaded: "bge-m3,e5-small"
};

/// A reading that should have been there, and what the driver said instead.
struct ReadingError {
  Reading reading;
  std::int32_t code = 0;  // the driver's own: NVML 3, errno 13
};

/// One visit to a device. For every tier in `tiers`, a reading of that tier which is not set could
/// not be taken; energy may come with the medium tier instead of the fast one.
struct DeviceSample {
  std::uint32_t device = 0;  // index into the list of identities
  TimePoint at;              // when the visit began
  TierSet tiers;
  Readings readings;
  std::vector<ReadingError> errors;                  // "not supported" is none
  std::vector<float> core_loads;                     // Cpu: 0 to 1 for each of Device::cpus
  std::optional<std::vector<GpuProcess>> processes;  // when they were listed
  std::uint32_t call_count = 0;                      // driver calls of this visit
  double call_seconds = 0;                           // time inside them
  std::optional<std::string> lost_reason;            // the device is gone: "GPU is lost (NVML 15)"
};

enum class DeviceEventKind : std::uint8_t {
  Xid,             // code: the XID
  EccUncorrected,  // double-bit
  RecoveryAction,  // code: nvmlDeviceGpuRecoveryAction_t
};

/// Something that the driver reported by itself.
struct DeviceEvent {
  std::uint32_t device = 0;
  DeviceEventKind kind = DeviceEventKind::Xid;
  std::uint64_t code = 0;
  TimePoint at;
};

/// What calls of one driver function have cost since the sampler started.
struct CallCost {
  std::string function;  // "nvmlDeviceGetFieldValues"
  std::uint64_t calls = 0;
  double seconds = 0;
  std::map<std::int32_t, std::uint64_t> errors;  // by the driver's code
};

/// What is found on a machine when watching begins.
struct WatchedMachine {
  std::string name = "here";            // "sim:8xH100-80G"
  std::vector<DeviceIdentity> devices;  // GPUs in PCI order, each followed by its slices; then CPUs
  LinkMatrix links;  // among the first `links.device_count` GPUs that are no slices
  std::optional<std::string> gpu_absent_reason;
};

struct XidCount {
  std::uint64_t count = 0;
  double last_unix_seconds = 0;
};

enum class HealthState : std::uint8_t { Well, Warning, Unfit };

/// One thing that was looked at.
struct HealthFinding {
  std::string watch;  // "xid", "ecc", "thermal", …: the label of gpu_health_state
  HealthState state = HealthState::Well;
  std::string sentence;  // what is wrong, values last; empty when well
};

/// A device as it is now.
struct DeviceStatus {
  DeviceIdentity identity;
  std::string name;  // shown_name
  bool is_up = false;
  std::string down_reason;  // "hung in nvmlDeviceGetFieldValues for 3 s"; empty when up
  std::string lost_reason;  // "GPU is lost (NVML 15)" where its driver said so last; else empty
  Readings readings;        // fresh ones only: none older than two intervals of its tier
  std::optional<double> last_success_unix_seconds;
  std::map<std::uint32_t, XidCount> xids;  // by code
  std::vector<GpuProcess> processes;
  std::vector<float> core_loads;
  std::map<std::int32_t, std::uint64_t> error_counts;  // failed readings by the driver's code
  std::vector<HealthFinding> health;                   // every watch that applies
};

/// A device can be relied on no more, or again.
struct DeviceFault {
  std::size_t device = 0;            // by its place among the devices for work
  std::optional<std::string> fault;  // "the driver reported XID 48 (1 times)"; nullopt: it is over
};

/// What watching costs.
struct CollectorStatus {
  static constexpr std::array<double, 10> kTickBounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                                      0.005,  0.01,    0.025,  0.05,  0.1};
  struct TierTicks {
    std::array<std::uint64_t, kTickBounds.size() + 1> counts{};  // visits by duration; last: above
    double seconds = 0;
    std::uint64_t missed = 0;  // visits that were due and did not take place
  };
  std::array<TierTicks, kTierCount> ticks;  // by the slowest tier of a visit
  std::vector<CallCost> calls;
  std::uint32_t restarts = 0;  // of the sampler process
  std::optional<std::uint32_t> sampler_pid;
  double cpu_seconds = 0;       // user + system of the sampler process
  std::uint64_t rss_bytes = 0;  // of the sampler process
};

/// All that is known at one moment; every view is drawn from one of these.
struct TelemetrySnapshot {
  TimePoint at;
  double unix_seconds = 0;  // the same moment by the wall clock
  std::string machine = "here";
  std::vector<DeviceStatus> devices;  // in the order of WatchedMachine::devices
  /// Those with the most CPU time first; empty where nobody has looked at them.
  std::vector<HostProcess> processes;
  LinkMatrix links;
  std::uint32_t expected_gpus = 0;  // GPUs, slices not counted, that were there when watching began
  std::optional<std::string> gpu_absent_reason;
  CollectorStatus collector;
};

}  // namespace muster
