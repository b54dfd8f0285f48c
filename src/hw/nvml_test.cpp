#include "hw/nvml.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

Result<std::vector<Device>> find_with(const std::string& flavour) {
  return find_nvidia_gpus({MUSTER_BINARY_DIR "/testdata/fake_nvml_" + flavour + ".so"});
}

TEST(FindNvidiaGpus, OrdersThemAsTheBusDoes) {
  const auto gpus = find_with("two_gpus");
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 2U);
  // The driver lists bus AF first and 1B second.
  EXPECT_EQ((*gpus)[0].name(), "cuda:0");
  EXPECT_EQ((*gpus)[0].pci_address, "00000000:1B:00.0");
  EXPECT_EQ((*gpus)[0].uuid, "GPU-0000001b-0000-0000-0000-000000000000");
  EXPECT_EQ((*gpus)[0].model, "NVIDIA H200");
  EXPECT_EQ((*gpus)[0].memory_total_bytes, 150754820096ULL);
  EXPECT_EQ((*gpus)[0].memory_free_bytes, 150000000000ULL);
  EXPECT_EQ((*gpus)[0].compute_capability, 90U);
  EXPECT_EQ((*gpus)[1].name(), "cuda:1");
  EXPECT_EQ((*gpus)[1].pci_address, "00000000:AF:00.0");
}

TEST(FindNvidiaGpus, FallsBackToOlderNamesAndLeavesOutALostGpu) {
  const auto gpus = find_with("old_driver");
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 1U);
  EXPECT_EQ((*gpus)[0].pci_address, "00000000:1B:00.0");
  EXPECT_FALSE((*gpus)[0].memory_total_bytes) << "the driver does not tell it";
  EXPECT_FALSE((*gpus)[0].memory_free_bytes);
  EXPECT_FALSE((*gpus)[0].compute_capability) << "nor this";
}

TEST(FindNvidiaGpus, SaysWhyThereIsNone) {
  struct Case {
    const char* flavour;
    const char* message;
  };
  for (const auto& [flavour, message] :
       {Case{"no_gpu", "the NVIDIA driver has no GPU"},
        Case{"broken", "the NVIDIA driver does not start: Driver Not Loaded (NVML 9)"}}) {
    SCOPED_TRACE(flavour);
    const auto gpus = find_with(flavour);
    ASSERT_FALSE(gpus);
    EXPECT_EQ(gpus.error().kind, ErrorKind::Unavailable);
    EXPECT_EQ(gpus.error().message, message);
  }
  const auto gpus = find_nvidia_gpus({"libno-such-nvml.so.1"});
  ASSERT_FALSE(gpus);
  EXPECT_EQ(gpus.error().message, "no NVIDIA driver (libno-such-nvml.so.1)");
}

}  // namespace
}  // namespace muster
