#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace muster {

// The part of NVIDIA's nvml.h that is used, so that no header of the vendor is needed to build.
// Source: nvml.h 13.3. Sizes are those of the C ABI on 64-bit Linux.

using NvmlCode = int;
using NvmlDevice = void*;
using NvmlEventSet = void*;
using NvmlGpmSample = void*;

// nvmlReturn_t.
inline constexpr NvmlCode kNvmlSuccess = 0;
inline constexpr NvmlCode kNvmlInvalidArgument = 2;
inline constexpr NvmlCode kNvmlNotSupported = 3;
inline constexpr NvmlCode kNvmlNoPermission = 4;
inline constexpr NvmlCode kNvmlInsufficientSize = 7;
inline constexpr NvmlCode kNvmlTimeout = 10;
inline constexpr NvmlCode kNvmlFunctionNotFound = 13;
inline constexpr NvmlCode kNvmlGpuIsLost = 15;
inline constexpr NvmlCode kNvmlUnknown = 999;

// NVML_DEVICE_NAME_V2_BUFFER_SIZE and NVML_DEVICE_UUID_V2_BUFFER_SIZE; longer than any other text.
inline constexpr unsigned kNvmlTextSize = 96;

/// What versioned structs say first.
constexpr std::uint32_t nvml_version(std::size_t size, std::uint32_t version) {
  return static_cast<std::uint32_t>(size) | version << 24;
}

/// nvmlPciInfo_t of the calls _v2 and _v3. The first name is the older, shorter form.
struct NvmlPciInfo {
  std::array<char, 16> bus_id_legacy;
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(NvmlPciInfo) == 68);

/// nvmlMemory_t: `used` has what the driver reserves in it.
struct NvmlMemory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(NvmlMemory) == 24);

/// nvmlMemory_v2_t.
struct NvmlMemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};
static_assert(sizeof(NvmlMemoryV2) == 40);

/// nvmlUtilization_t: percent.
struct NvmlUtilization {
  std::uint32_t gpu;
  std::uint32_t memory;
};
static_assert(sizeof(NvmlUtilization) == 8);

/// nvmlProcessInfo_v1_t.
struct NvmlProcessV1 {
  std::uint32_t pid;
  std::uint64_t used_memory;
};
static_assert(sizeof(NvmlProcessV1) == 16);

/// nvmlProcessInfo_v2_t, of the calls _v2 and _v3.
struct NvmlProcessV2 {
  std::uint32_t pid;
  std::uint64_t used_memory;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(NvmlProcessV2) == 24);

/// What some drivers of the 535 series write instead: protected memory comes last.
inline constexpr std::size_t kNvmlProcessSizeMax = 32;

/// NVML_VALUE_NOT_AVAILABLE as a process's memory.
inline constexpr std::uint64_t kNvmlMemoryUnknown = std::numeric_limits<std::uint64_t>::max();

/// nvmlValueType_t.
enum class NvmlValueType : std::uint32_t {
  Double = 0,
  Uint = 1,
  Ulong = 2,
  Ulonglong = 3,
  Longlong = 4,
  Int = 5,
  Ushort = 6,
};

/// nvmlFieldValue_t. `value` is nvmlValue_t, a union, as its eight bytes.
struct NvmlFieldValue {
  std::uint32_t field;
  std::uint32_t scope;
  std::int64_t timestamp_us;
  std::int64_t latency_us;
  NvmlValueType type;
  NvmlCode code;
  std::array<unsigned char, 8> value;
};
static_assert(sizeof(NvmlFieldValue) == 40);

/// nvmlTemperature_v1_t.
struct NvmlTemperature {
  std::uint32_t version;
  std::uint32_t sensor;
  std::int32_t celsius;
};
static_assert(sizeof(NvmlTemperature) == 12);

/// nvmlMarginTemperature_v1_t.
struct NvmlMarginTemperature {
  std::uint32_t version;
  std::int32_t celsius;
};
static_assert(sizeof(NvmlMarginTemperature) == 8);

/// nvmlDeviceAddressingMode_v1_t; 2: one set of page tables with the CPU (ATS).
struct NvmlAddressingMode {
  std::uint32_t version;
  std::uint32_t mode;
};
static_assert(sizeof(NvmlAddressingMode) == 8);
inline constexpr std::uint32_t kNvmlAddressingAts = 2;

/// nvmlDeviceAttributes_t, of the call _v2.
struct NvmlAttributes {
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint32_t gpu_instance_slices;
  std::uint32_t compute_instance_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(NvmlAttributes) == 40);

/// nvmlEventData_t.
struct NvmlEventData {
  NvmlDevice device;
  std::uint64_t type;
  std::uint64_t data;
  std::uint32_t gpu_instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(NvmlEventData) == 32);

// nvmlEventType*.
inline constexpr std::uint64_t kNvmlEventDoubleBitEcc = 0x2;
inline constexpr std::uint64_t kNvmlEventXid = 0x8;
inline constexpr std::uint64_t kNvmlEventRecoveryAction = 0x8000;

/// nvmlGpmSupport_t.
struct NvmlGpmSupport {
  std::uint32_t version;
  std::uint32_t is_supported;
};
static_assert(sizeof(NvmlGpmSupport) == 8);

/// nvmlGpmMetric_t.
struct NvmlGpmMetric {
  std::uint32_t id;
  NvmlCode code;
  double value;
  std::array<const char*, 3> info;
};
static_assert(sizeof(NvmlGpmMetric) == 40);

/// nvmlGpmMetricsGet_t. The array grows from header to header; the library goes by `count`.
struct NvmlGpmMetrics {
  std::uint32_t version;
  std::uint32_t count;
  NvmlGpmSample older;
  NvmlGpmSample newer;
  std::array<NvmlGpmMetric, 333> metrics;
};
static_assert(sizeof(NvmlGpmMetrics) == 13344);

// NVML_GPM_METRICS_GET_VERSION, NVML_GPM_SUPPORT_VERSION: plain numbers, without a size.
inline constexpr std::uint32_t kNvmlGpmVersion = 1;

// NVML_NVLINK_MAX_LINKS of nvml.h 13.3; the first headers had 6.
inline constexpr unsigned kNvmlLinkMax = 36;

/// nvmlIntNvLinkDeviceType_t.
inline constexpr std::uint32_t kNvmlLinkToGpu = 0;
inline constexpr std::uint32_t kNvmlLinkToSwitch = 2;

// scopeId of NVLink fields: all links together.
inline constexpr std::uint32_t kNvmlAllLinks = std::numeric_limits<std::uint32_t>::max();

}  // namespace muster
