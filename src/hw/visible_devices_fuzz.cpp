#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "hw/visible_devices.h"

namespace {

muster::DeviceIdentity gpu(const char* uuid, bool is_mig_on) {
  muster::DeviceIdentity identity;
  identity.device.uuid = uuid;
  identity.is_mig_on = is_mig_on;
  return identity;
}

muster::DeviceIdentity slice(const char* uuid, std::uint32_t instance) {
  muster::DeviceIdentity identity;
  identity.device.uuid = uuid;
  identity.parent = "GPU-c3";
  identity.gpu_instance = instance;
  identity.compute_instance = 0;
  return identity;
}

}  // namespace

// Whatever CUDA_VISIBLE_DEVICES says: ordinals count from 0 without a gap, and a slice is alone.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<muster::DeviceIdentity> devices{
      gpu("GPU-a1", false), gpu("GPU-a2", false), gpu("GPU-c3", true), slice("MIG-1", 7),
      slice("MIG-2", 8)};
  const std::string visible(reinterpret_cast<const char*>(data), size);
  const auto ordinals = muster::cuda_ordinals(devices, visible, "PCI_BUS_ID");
  MUSTER_CHECK(ordinals.size() == devices.size());
  std::uint32_t seen = 0;
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < ordinals.size(); ++i) {
    if (!ordinals[i]) continue;
    ++count;
    seen |= 1U << *ordinals[i];
    MUSTER_CHECK(!devices[i].parent || *ordinals[i] == 0);
    MUSTER_CHECK(!devices[i].is_mig_on.value_or(false));
  }
  MUSTER_CHECK(seen == (1U << count) - 1);
  return 0;
}
