#include "hw/nvml.h"

#include <gtest/gtest.h>

#include "hw/nvml_driver_test.h"

namespace muster {
namespace {

TEST(FindNvidiaGpus, OrdersThemAsTheBusDoes) {
  const FakeDriver driver(R"({"fake_nvml": 1, "gpus": [
      {"pci": "00000000:AF:00.0"},
      {"pci": "00000000:1B:00.0", "uuid": "GPU-0000001b-0000-0000-0000-000000000000",
       "memory_bytes": 150754820096, "reserved_bytes": 50,
       "values": {"memory_used_bytes": 754820046}}]})");
  const auto gpus = find_nvidia_gpus(driver.options().libraries);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 2U);
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

TEST(FindNvidiaGpus, LeavesOutALostGpuAndWhatTheDriverDoesNotTell) {
  const FakeDriver driver(R"({"fake_nvml": 1, "driver": "450.248.02", "gpus": [
      {"model": "A100-40G", "pci": "00000000:1B:00.0", "lost": {"from": 0}},
      {"model": "A100-40G", "pci": "00000000:AF:00.0",
       "errors": {"nvmlDeviceGetCudaComputeCapability": "NOT_SUPPORTED",
                  "nvmlDeviceGetMemoryInfo": "NOT_SUPPORTED"}}]})",
                          "libfakenvml-450.so");
  const auto gpus = find_nvidia_gpus(driver.options().libraries);
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 1U);
  EXPECT_EQ((*gpus)[0].pci_address, "00000000:AF:00.0");
  EXPECT_EQ((*gpus)[0].index, 0U);
  EXPECT_FALSE((*gpus)[0].memory_total_bytes);
  EXPECT_FALSE((*gpus)[0].memory_free_bytes);
  EXPECT_FALSE((*gpus)[0].compute_capability);
}

TEST(FindNvidiaGpus, SaysWhyThereIsNone) {
  struct Case {
    const char* scenario;
    const char* message;
  };
  for (const auto& [scenario, message] :
       {Case{R"({"fake_nvml": 1, "gpus": []})", "the NVIDIA driver has no GPU"},
        Case{R"({"fake_nvml": 1, "gpus": [{"lost": {"from": 0}}]})",
             "the NVIDIA driver can open none of its 1 GPUs"},
        Case{R"({"fake_nvml": 1, "gpus": [{}], "errors": {"nvmlInit_v2": "DRIVER_NOT_LOADED"}})",
             "the NVIDIA driver does not start: Driver Not Loaded (NVML 9)"}}) {
    SCOPED_TRACE(scenario);
    const FakeDriver driver(scenario);
    const auto gpus = find_nvidia_gpus(driver.options().libraries);
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
