#include "cli/sweep/availability_check.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

PointAvailability found(std::vector<std::string> available,
                        std::vector<std::string> unavailable = {}) {
  return {.requested = {},
          .available = std::move(available),
          .unavailable = std::move(unavailable),
          .errors = {}};
}

TEST(UsedDevices, HaveTheNamesOfResults) {
  EXPECT_EQ(used_devices("GPU-5e00,cuda:1", found({"cuda:0", "cuda:1"})), "cuda:0,cuda:1");
  EXPECT_EQ(used_devices("2xcuda", found({"cuda:0", "cuda:1"})), "cuda:0,cuda:1");
  EXPECT_EQ(used_devices("cuda:0,cuda:7", found({"cuda:0"}, {"cuda:7"})), "cuda:0");
  EXPECT_EQ(used_devices("cuda:7", found({}, {"cuda:7"})), "");
}

// cpu:0 of 2xcpu is a half of the machine, and cpu:0 alone all of it.
TEST(UsedDevices, AreSharesOfTheCpusAsTheyWereAskedFor) {
  EXPECT_EQ(used_devices("2xcpu", found({"cpu:0", "cpu:1"})), "2xcpu");
  EXPECT_EQ(used_devices(" 2xCPU", found({"cpu:0", "cpu:1"})), "2xcpu");
  EXPECT_EQ(used_devices("cpu:0", found({"cpu:0"})), "cpu:0");
  EXPECT_EQ(used_devices("1xcpu,CPU:9", found({"cpu:0"}, {"CPU:9"})), "1xcpu");
}

// The GPUs beside a share of the CPUs are known by their names, and only those that are fit.
TEST(UsedDevices, AreGpusByNameBesideAShareOfTheCpus) {
  EXPECT_EQ(used_devices("2xcuda,1xcpu", found({"cuda:0", "cuda:1", "cpu:0"})),
            "cuda:0,cuda:1,1xcpu");
  EXPECT_EQ(used_devices("2xcuda,1xcpu", found({"cuda:1", "cpu:0"}, {"cuda:0"})), "cuda:1,1xcpu");
  EXPECT_EQ(used_devices("1xcpu,GPU-5e00,cuda:1", found({"cpu:0", "cuda:3", "cuda:1"})),
            "1xcpu,cuda:3,cuda:1");
  EXPECT_EQ(used_devices("cuda:7,1xcpu", found({"cpu:0"}, {"cuda:7"})), "1xcpu");
}

TEST(AddLostGpus, TheyAreMissingWhereAllGpusAreMeant) {
  Inventory inventory;
  inventory.gpus.resize(2);
  inventory.gpus[0].kind = inventory.gpus[1].kind = DeviceKind::Cuda;
  inventory.gpus[1].index = 1;
  inventory.gpus[0].lost_reason = "GPU is lost (NVML 15)";
  Availability well;
  well.requested = well.available = {"cuda:1"};
  for (const auto* list : {"auto", "cuda", "cuda,cpu:0"}) {
    auto found = well;
    add_lost_gpus(list, inventory, found);
    EXPECT_EQ(found.requested, (std::vector<std::string>{"cuda:1", "cuda:0"})) << list;
    EXPECT_EQ(found.unavailable, std::vector<std::string>{"cuda:0"}) << list;
    EXPECT_EQ(found.errors.at("cuda:0"), "cuda:0 is lost: GPU is lost (NVML 15)") << list;
    EXPECT_FALSE(found.all_available()) << list;
  }
  for (const auto* list : {"1xcuda", "cuda:1", "cpu", "GPU-5e00"}) {
    auto found = well;
    add_lost_gpus(list, inventory, found);
    EXPECT_TRUE(found.all_available()) << list;
  }
}

// With device_count_most 1 cuda:0 alone would be used, whatever became of the others.
TEST(AddLostGpus, NoneIsMissingWhereAsManyAsMayBeUsedAreThere) {
  Inventory inventory;
  inventory.gpus.resize(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    inventory.gpus[i].kind = DeviceKind::Cuda;
    inventory.gpus[i].index = i;
  }
  inventory.gpus[1].lost_reason = inventory.gpus[2].lost_reason = "GPU is lost (NVML 15)";
  Availability well;
  well.requested = well.available = {"cuda:0"};
  auto found = well;
  add_lost_gpus("auto", inventory, found, 1);
  EXPECT_TRUE(found.all_available());
  add_lost_gpus("auto", inventory, found, 2);
  EXPECT_EQ(found.unavailable, std::vector<std::string>{"cuda:1"});
  inventory.gpus = {inventory.gpus[1]};
  auto cpus = well;
  cpus.requested = cpus.available = {"cpu:0"};
  add_lost_gpus("auto", inventory, cpus, 1);
  EXPECT_EQ(cpus.unavailable, std::vector<std::string>{"cuda:1"}) << "a CPU stands in for it";
}

TEST(AddLostGpus, WhatIsSaidAlreadyIsNotSaidTwice) {
  Inventory inventory;
  inventory.gpus.resize(1);
  inventory.gpus[0].kind = DeviceKind::Cuda;
  inventory.gpus[0].lost_reason = "GPU is lost (NVML 15)";
  auto found = *request_devices("cuda", inventory, std::nullopt);
  ASSERT_EQ(found.unavailable, std::vector<std::string>{"cuda"});
  add_lost_gpus("cuda", inventory, found);
  EXPECT_EQ(found.unavailable, std::vector<std::string>{"cuda"});
}

TEST(HardwareOf, TellsMachinesApartWhoseDevicesHaveTheSameNames) {
  Inventory inventory;
  inventory.cpu_model = "AMD EPYC";
  inventory.allowed_cpus = {0, 1, 2, 3};
  Availability found;
  found.available = {"cuda:0", "cpu:0"};
  found.devices = {{.kind = DeviceKind::Cuda, .index = 0, .model = "H200", .uuid = "GPU-1"},
                   {.kind = DeviceKind::Cuda, .index = 1, .model = "H200", .uuid = "GPU-2"},
                   {.kind = DeviceKind::Cpu, .cpus = {0, 2}}};
  EXPECT_EQ(hardware_of(found, inventory), "AMD EPYC, 4 logical CPUs; H200 GPU-1; 2 cores")
      << "the second GPU is unfit";
}

}  // namespace
}  // namespace muster
