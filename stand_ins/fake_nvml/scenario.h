#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fake_nvml/curve.h"
#include "fake_nvml/functions.h"
#include "fake_nvml/model.h"

namespace muster::fake_nvml {

/// What a scenario may set over time, by the names of `value_names`.
enum class ValueId : std::uint8_t {
  EccCorrectedVolatile,
  EccUncorrectedVolatile,
  EccCorrectedAggregate,
  EccUncorrectedAggregate,
  RemappedCorrectable,
  RemappedUncorrectable,
  RemapPending,
  RemapFailed,
  RetiredSingleBit,
  RetiredDoubleBit,
  RetiredPending,
  NvlinkCrcFlit,
  NvlinkCrcData,
  NvlinkReplay,
  NvlinkRecovery,
  NvlinkLinksDown,
  PcieReplays,
  PcieGeneration,
  PcieLanes,
  RecoveryAction,
  TemperatureCore,
  TemperatureMemory,
  PowerLimit,
  MemoryUsed,
  ModulePower,
  MemoryPower,
};
inline constexpr std::size_t kValueCount = static_cast<std::size_t>(ValueId::MemoryPower) + 1;
inline constexpr std::array<std::string_view, kValueCount> kValueNames{"ecc_corrected_volatile",
                                                                       "ecc_uncorrected_volatile",
                                                                       "ecc_corrected_aggregate",
                                                                       "ecc_uncorrected_aggregate",
                                                                       "remapped_correctable",
                                                                       "remapped_uncorrectable",
                                                                       "remap_pending",
                                                                       "remap_failed",
                                                                       "retired_single_bit",
                                                                       "retired_double_bit",
                                                                       "retired_pending",
                                                                       "nvlink_crc_flit",
                                                                       "nvlink_crc_data",
                                                                       "nvlink_replay",
                                                                       "nvlink_recovery",
                                                                       "nvlink_links_down",
                                                                       "pcie_replays",
                                                                       "pcie_generation",
                                                                       "pcie_lanes",
                                                                       "recovery_action",
                                                                       "temperature_core",
                                                                       "temperature_memory",
                                                                       "power_limit_watts",
                                                                       "memory_used_bytes",
                                                                       "module_power_watts",
                                                                       "memory_power_watts"};

/// A value of a scenario: the GPU's own, one over time, or none (the driver says "not supported").
struct ScriptedValue {
  bool is_absent = false;
  std::optional<Curve> curve;
};

/// The shares of its time that a fully loaded GPU spends with each part, 0 to 1.
enum class Activity : std::uint8_t {
  MemoryBusy,
  Sm,
  Occupancy,
  Tensor,
  Dfma,
  Hmma,
  Dmma,
  Imma,
  Dram,
  Fp64,
  Fp32,
  Fp16,
  Int,
};
inline constexpr std::size_t kActivityCount = static_cast<std::size_t>(Activity::Int) + 1;
inline constexpr std::array<std::string_view, kActivityCount> kActivityNames{
    "memory_busy", "sm",   "occupancy", "tensor", "dfma", "hmma", "dmma",
    "imma",        "dram", "fp64",      "fp32",   "fp16", "int"};

/// Bytes a second at full load.
struct Traffic {
  double pcie_sent = 4e9;
  double pcie_received = 8e9;
  double nvlink_sent = 50e9;
  double nvlink_received = 50e9;
};

/// From and until when, in seconds; until: nullopt is for ever.
struct Span {
  double from = 0;
  std::optional<double> until;
  bool covers(double at) const { return at >= from && (!until || at < *until); }
};

enum class ProcessKind : std::uint8_t { Compute, Graphics, Mps };

struct FakeProcess {
  std::uint32_t pid = 0;
  std::string name;
  std::optional<std::uint64_t> memory_bytes;  // nullopt: the driver does not know
  ProcessKind kind = ProcessKind::Compute;
  Span span;
  std::uint32_t gpu_instance = 0xFFFFFFFF;
  std::uint32_t compute_instance = 0xFFFFFFFF;
};

struct MigSlice {
  std::uint32_t index = 0;  // for nvmlDeviceGetMigDeviceHandleByIndex
  std::string profile;      // "1g.18gb"
  std::string uuid;
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::uint32_t slices = 1;  // of seven
  std::uint64_t memory_bytes = 0;
  std::uint32_t multiprocessor_count = 0;
  std::optional<Curve> load;  // else the GPU's
};

struct FakeEvent {
  double at = 0;
  std::uint64_t type = 0;  // kEvent…
  std::uint64_t data = 0;
};

/// A reason for a lower clock: its bit, and when it holds (a curve of 0 and 1).
struct Throttle {
  std::uint32_t bit = 0;
  Curve curve = Curve::constant(0);
};

/// What a call does instead of answering.
enum class FaultKind : std::uint8_t { Error, Hang, Crash };
struct Fault {
  FaultKind kind = FaultKind::Error;
  int code = 0;
  Span span;
  std::vector<std::uint32_t> gpus;  // empty: all, and the functions that concern none
};

struct NvlinkPeer {
  std::uint32_t gpu = 0;
  std::uint32_t links = 0;
};

struct FakeGpu {
  const Model* model = nullptr;
  std::string name;
  std::string uuid;
  std::string serial;
  std::string vbios = "96.00.CF.00.01";
  std::uint32_t pci_domain = 0;
  std::uint32_t pci_bus = 0;
  std::uint32_t pci_device = 0;
  std::uint32_t minor_number = 0;
  std::uint32_t numa_node = 0;
  std::uint32_t host_bridge = 0;
  std::uint32_t pcie_tree = 0;    // of switches below one host bridge
  std::uint32_t pcie_switch = 0;  // of the tree
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_reserved_bytes = 0;
  std::uint32_t compute_mode = 0;
  bool is_persistent = true;
  std::optional<bool> is_ecc_on = true;      // nullopt: no ECC
  std::optional<std::vector<MigSlice>> mig;  // nullopt: the mode is off
  bool shares_host_memory = false;

  Curve load = Curve::constant(0);
  std::array<double, kActivityCount> activity{};
  Traffic traffic;
  double idle_watts = 0;
  double load_watts = 0;
  double temperature_lag_s = 10;       // time constant of both temperatures
  std::int64_t refresh_phase_ns = 0;   // of the sensor's 100 ms
  double energy_start_joules = 0;      // on the counter at time 0
  std::vector<double> energy_resets;   // when the counter begins anew
  std::optional<Span> energy_missing;  // the counter is not supported then
  std::array<ScriptedValue, kValueCount> values;
  std::vector<Throttle> throttles;
  std::vector<FakeProcess> processes;
  std::vector<FakeEvent> events;  // by time
  std::optional<Span> lost;
  std::map<std::uint32_t, double> field_delays_us;  // of nvmlDeviceGetFieldValues
  std::uint32_t nvlink_count = 0;  // of the GPU; each goes to a switch or to a peer
  bool has_nvlink_switch = false;
  std::vector<NvlinkPeer> nvlink_peers;
};

enum class ClockKind : std::uint8_t { Steady, Stepped };

struct Scenario {
  std::uint32_t generation = 590;  // the driver's series
  std::string driver_version = "590.48.01";
  std::uint32_t cuda_version = 13010;  // 13.1
  std::uint32_t process_entry_bytes = 24;
  ClockKind clock = ClockKind::Steady;
  std::filesystem::path clock_file;
  std::filesystem::path statistics_file;
  std::vector<FakeGpu> gpus;
  std::array<std::vector<Fault>, kFunctionCount> faults;
  std::map<std::uint32_t, std::vector<Fault>> field_faults;  // of nvmlDeviceGetFieldValues
  std::array<double, kFunctionCount> delays_us{};
};

/// One idle H200 under the driver of a series: 450, 535, 580 or 590.
Scenario default_scenario(std::uint32_t generation);

/// A scenario of a file. Format: docs/formats/fake-nvml.md.
///
/// Errors: NotFound, Corrupt (no JSON: with the line), InvalidArgument (with the field).
Result<Scenario> read_scenario(const std::filesystem::path& file, std::uint32_t generation);

/// Errors as above; `name` is the file's in messages.
Result<Scenario> parse_scenario(std::string_view text, std::string_view name,
                                std::uint32_t generation);

}  // namespace muster::fake_nvml
