// A stand-in for NVIDIA's libnvidia-ml.so.1, so that its reader is tested where there is no driver.
// The flavour is chosen by a macro. Signatures and codes as in NVIDIA's nvml.h 13.3.
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

struct Memory {
  std::uint64_t total, free, used;
};

#if !defined(FAKE_BROKEN)
// Not in PCI order on purpose.
constexpr std::uint32_t kBuses[] = {0xAF, 0x1B};
int handles[2];

unsigned index_of(void* handle) { return handle == &handles[0] ? 0 : 1; }
#endif

}  // namespace

extern "C" {

#if defined(FAKE_BROKEN)
int nvmlInit_v2() { return 9; }  // NVML_ERROR_DRIVER_NOT_LOADED
#elif defined(FAKE_OLD_DRIVER)
int nvmlInit() { return 0; }
#else
int nvmlInit_v2() { return 0; }
#endif
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) { return code == 9 ? "Driver Not Loaded" : "Unknown Error"; }

#if defined(FAKE_OLD_DRIVER)
int nvmlDeviceGetCount(unsigned* count) {
#else
int nvmlDeviceGetCount_v2(unsigned* count) {
#endif
#if defined(FAKE_NO_GPU)
  *count = 0;
#else
  *count = 2;
#endif
  return 0;
}

#if defined(FAKE_BROKEN)
int nvmlDeviceGetHandleByIndex_v2(unsigned, void**) { return 15; }
int nvmlDeviceGetName(void*, char*, unsigned) { return 3; }
int nvmlDeviceGetUUID(void*, char*, unsigned) { return 3; }
int nvmlDeviceGetPciInfo_v3(void*, PciInfo*) { return 3; }
int nvmlDeviceGetMemoryInfo(void*, Memory*) { return 3; }
#else
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
#if defined(FAKE_OLD_DRIVER)
  if (index == 0) return 15;  // NVML_ERROR_GPU_IS_LOST
#endif
  *handle = &handles[index];
  return 0;
}

int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "NVIDIA H200");
  return 0;
}

#if !defined(FAKE_OLD_DRIVER)
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return 0;
}
#endif

int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%08x-0000-0000-0000-000000000000", kBuses[index_of(handle)]);
  return 0;
}

#if defined(FAKE_OLD_DRIVER)
int nvmlDeviceGetPciInfo_v2(void* handle, PciInfo* pci) {
#else
int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* pci) {
#endif
  std::memset(pci, 0, sizeof(*pci));
  pci->bus = kBuses[index_of(handle)];
  std::snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "0000:%02x:00.0", pci->bus);
  return 0;
}

int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
#if defined(FAKE_OLD_DRIVER)
  (void)memory;
  return 3;  // NVML_ERROR_NOT_SUPPORTED
#else
  *memory = {150754820096ULL, 150000000000ULL, 754820096ULL};
  return 0;
#endif
}
#endif

}  // extern "C"
