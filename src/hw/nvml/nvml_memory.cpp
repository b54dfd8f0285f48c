// The second version of the call keeps what the driver reserves apart from what is used; the first
// counts it as used. The older one is asked only where the newer is absent, so that figures of one
// device never mix both meanings.

#include "hw/nvml/nvml_memory.h"

#include "hw/nvml/nvml_identity.h"

namespace muster {
namespace {

void show(NvmlVisit& visit, const NvmlMemoryUse& use) {
  visit.set(Reading::GpuMemorySize, static_cast<double>(use.total));
  visit.set(Reading::GpuMemoryFree, static_cast<double>(use.free));
  visit.set(Reading::GpuMemoryUsed, static_cast<double>(use.used));
  if (use.reserved) visit.set(Reading::GpuMemoryReserved, static_cast<double>(*use.reserved));
}

}  // namespace

void NvmlMemoryReader::read(NvmlVisit& visit, NvmlDevice device) {
  using enum Reading;
  const auto& nvml = visit.functions();
  NvmlMemoryV2 newer{};
  newer.version = nvml_version(sizeof(newer), 2);
  if (visit.ask(newer_, {GpuMemoryUsed, GpuMemoryFree, GpuMemoryReserved, GpuMemorySize},
                nvml.memory_v2, device, &newer)) {
    show(visit, memory_use(newer));
  } else if (newer_ == NvmlOffer::Absent) {
    NvmlMemory older{};
    if (visit.ask(older_, {GpuMemoryUsed, GpuMemoryFree, GpuMemorySize}, nvml.memory, device,
                  &older)) {
      show(visit, memory_use(older));
    }
  }
}

}  // namespace muster
