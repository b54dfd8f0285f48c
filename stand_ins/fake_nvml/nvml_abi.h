#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// The part of NVML's binary interface that libfakenvml.so offers, written down from nvml.h. It is
/// a reading of its own: src/hw has another, so that a mistake in either shows when the two meet.
///
/// Source: nvml.h 13.3 (NVIDIA/go-nvml 2f9e261f, gen/nvml/nvml.h), x86-64 and AArch64.
namespace muster::fake_nvml {

enum Code : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kGpuIsLost = 15,
  kLibraryVersionMismatch = 18,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

/// nvmlDevice_t, nvmlEventSet_t and nvmlGpmSample_t are pointers to nothing that a caller may read.
struct HandleState;
using DeviceHandle = HandleState*;
struct EventSetState;
using EventSetHandle = EventSetState*;
struct GpmSampleState;
using GpmSampleHandle = GpmSampleState*;

/// `version` of a struct that carries one: its size and the number of its version.
template <typename Struct>
constexpr std::uint32_t version_of(std::uint32_t number) {
  return static_cast<std::uint32_t>(sizeof(Struct)) | (number << 24);
}

inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;  // gpuInstanceId outside MIG
inline constexpr std::uint32_t kLinksMax = 36;            // NVML_NVLINK_MAX_LINKS
inline constexpr std::uint32_t kGpmMetricsMax = 333;      // NVML_GPM_METRIC_MAX

struct PciInfo {
  std::array<char, 16> bus_id_legacy;
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(MemoryV2) == 40 && version_of<MemoryV2>(2) == 0x02000028);

struct Utilization {
  std::uint32_t gpu;
  std::uint32_t memory;
};
static_assert(sizeof(Utilization) == 8);

struct ProcessInfoV1 {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
};
static_assert(sizeof(ProcessInfoV1) == 16);

struct ProcessInfoV2 {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(ProcessInfoV2) == 24 && offsetof(ProcessInfoV2, gpu_instance) == 16);

/// What some drivers of the 535 series fill where 24 bytes are meant; nvmlProcessDetail_v1_t too.
struct ProcessInfo32 {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
  std::uint64_t used_protected_memory;
};
static_assert(sizeof(ProcessInfo32) == 32);

struct ProcessDetailList {
  std::uint32_t version;
  std::uint32_t mode;  // 0 compute, 1 graphics, 2 MPS
  std::uint32_t entry_count;
  ProcessInfo32* entries;
};
static_assert(sizeof(ProcessDetailList) == 24 && version_of<ProcessDetailList>(1) == 0x01000018);

enum ValueType : std::uint32_t {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLongLong = 3,
  kSignedInt = 5,
};

union Value {
  double as_double;
  std::int32_t as_int;
  std::uint32_t as_unsigned;
  std::uint64_t as_unsigned_long_long;
};
static_assert(sizeof(Value) == 8);

struct FieldValue {
  std::uint32_t field;
  std::uint32_t scope;
  std::int64_t timestamp_us;  // since 1970
  std::int64_t latency_us;
  std::uint32_t value_type;
  std::int32_t code;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, timestamp_us) == 8 &&
              offsetof(FieldValue, latency_us) == 16 && offsetof(FieldValue, value_type) == 24 &&
              offsetof(FieldValue, code) == 28 && offsetof(FieldValue, value) == 32);

struct Sample {
  std::uint64_t timestamp_us;
  Value value;
};
static_assert(sizeof(Sample) == 16);

struct EventData {
  DeviceHandle device;
  std::uint64_t type;
  std::uint64_t data;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(EventData) == 32);

inline constexpr std::uint64_t kEventDoubleBitEcc = 0x2;
inline constexpr std::uint64_t kEventXid = 0x8;
inline constexpr std::uint64_t kEventRecoveryAction = 0x8000;

struct DeviceAttributes {
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint32_t gpu_instance_slice_count;
  std::uint32_t compute_instance_slice_count;
  std::uint64_t memory_size_mib;
};
static_assert(sizeof(DeviceAttributes) == 40);

struct Temperature {
  std::uint32_t version;
  std::uint32_t sensor;
  std::int32_t celsius;
};
static_assert(version_of<Temperature>(1) == 0x0100000c);

struct MarginTemperature {
  std::uint32_t version;
  std::int32_t celsius;
};
static_assert(version_of<MarginTemperature>(1) == 0x01000008);

struct AddressingMode {
  std::uint32_t version;
  std::uint32_t value;
};
static_assert(version_of<AddressingMode>(1) == 0x01000008);

struct ConfComputeMemory {
  std::uint64_t protected_kib;
  std::uint64_t unprotected_kib;
};
static_assert(sizeof(ConfComputeMemory) == 16);

struct GpmMetric {
  std::uint32_t metric;
  std::int32_t code;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};
static_assert(sizeof(GpmMetric) == 40);

struct GpmMetricsGet {
  std::uint32_t version;  // 1; not the size: the struct grows with the header
  std::uint32_t metric_count;
  GpmSampleHandle sample1;
  GpmSampleHandle sample2;
  std::array<GpmMetric, kGpmMetricsMax> metrics;
};
static_assert(sizeof(GpmMetricsGet) == 13344);

struct GpmSupport {
  std::uint32_t version;  // 1
  std::uint32_t is_supported;
};
static_assert(sizeof(GpmSupport) == 8);

}  // namespace muster::fake_nvml
