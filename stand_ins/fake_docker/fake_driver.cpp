// A stand-in for NVIDIA's libnvidia-ml.so.1 on a machine with four GPUs: three equal ones and a
// faster fourth, listed in PCI order. Found by LD_LIBRARY_PATH. Signatures as in nvml.h 13.3.
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

constexpr unsigned kCount = 4;
int handles[kCount];

unsigned index_of(const void* handle) {
  for (unsigned i = 0; i < kCount; ++i) {
    if (handle == &handles[i]) return i;
  }
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "Unknown Error"; }

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kCount;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = &handles[index];
  return 0;
}

int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, index_of(handle) == 3 ? "NVIDIA L40S" : "NVIDIA A10G");
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
  *major = 8;
  *minor = index_of(handle) == 3 ? 9 : 6;
  return 0;
}

int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%08x-0000-0000-0000-000000000000", index_of(handle));
  return 0;
}

int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* pci) {
  std::memset(pci, 0, sizeof(*pci));
  pci->bus = 0x10 + index_of(handle);
  std::snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "0000:%02x:00.0", pci->bus);
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* handle, Memory* memory) {
  const std::uint64_t total = index_of(handle) == 3 ? 48'000'000'000 : 24'000'000'000;
  *memory = {total, total - 500'000'000, 500'000'000};
  return 0;
}

}  // extern "C"
