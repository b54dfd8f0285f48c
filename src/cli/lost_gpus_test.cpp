// GPUs that are lost: which are told, and which were hidden on purpose. The last tests ask a
// sampler process and a driver for tests (stand_ins/fake_nvml).

#include "cli/lost_gpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/device_choice.h"
#include "cli/find_machine.h"
#include "cli/machine_choice.h"

namespace muster {
namespace {

constexpr const char* kLost = "GPU is lost (NVML 15)";

DeviceStatus gpu(std::uint32_t index, std::optional<std::string> uuid,
                 std::optional<std::uint32_t> ordinal) {
  DeviceStatus status;
  status.identity.device.kind = DeviceKind::Cuda;
  status.identity.device.index = index;
  status.identity.device.uuid = std::move(uuid);
  status.identity.cuda_ordinal = ordinal;
  status.identity.device.compute_capability = 75;  // a T4's
  status.identity.multiprocessor_count = 40;
  status.name = status.identity.device.name();
  return status;
}

// As a driver lists one that it cannot open: in its place, and nothing is known of it.
DeviceStatus lost_gpu(std::uint32_t index) {
  auto status = gpu(index, std::nullopt, std::nullopt);
  status.identity.device.compute_capability.reset();
  status.identity.multiprocessor_count.reset();
  status.lost_reason = kLost;
  return status;
}

std::vector<Device> marked(const std::vector<DeviceStatus>& statuses,
                           const CudaVariables& variables) {
  WatchedMachine machine;
  for (const auto& status : statuses) machine.devices.push_back(status.identity);
  auto gpus = devices_for_work(machine, variables.visible);
  mark_lost(gpus, statuses, variables);
  return gpus;
}

TEST(MarkLost, ALostGpuHasItsDriversWordsAndTheOthersAreUsable) {
  const auto gpus = marked({lost_gpu(0), gpu(1, "GPU-b", 0), DeviceStatus{}}, {});
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].lost_reason, kLost);
  EXPECT_FALSE(gpus[0].is_usable());
  EXPECT_EQ(gpus[1].lost_reason, "");
  EXPECT_TRUE(gpus[1].is_usable());
}

TEST(MarkLost, AGpuThatWasLostBehindItsOpeningCountsToo) {
  auto lost = gpu(0, "GPU-a", 0);
  lost.lost_reason = kLost;
  EXPECT_EQ(marked({lost, gpu(1, "GPU-b", 1)}, {})[0].lost_reason, kLost);
}

// CUDA counts GPU 1 as the first where GPU 0 is lost, and so finds none of the number 1.
TEST(MarkLost, OneThatIsHiddenOnPurposeIsNotTold) {
  const auto of_first = [](const char* visible, std::optional<std::uint32_t> ordinal_of_second) {
    return marked({lost_gpu(0), gpu(1, "GPU-b", ordinal_of_second)}, {.visible = visible})[0];
  };
  for (const auto* visible : {"", "-1", "NoDevFiles"}) {
    EXPECT_EQ(of_first(visible, std::nullopt).lost_reason, "") << visible;
    EXPECT_EQ(of_first(visible, std::nullopt).hidden_by,
              std::string("CUDA_VISIBLE_DEVICES=") + visible);
  }
  EXPECT_EQ(of_first("GPU-b", 0).lost_reason, "");
  EXPECT_EQ(of_first("0", 0).lost_reason, kLost) << "it is named";
  EXPECT_EQ(of_first("GPU-a", std::nullopt).lost_reason, kLost) << "it may be the one";
  EXPECT_EQ(of_first("1", std::nullopt).lost_reason, "") << "GPU 1 is used by its UUID";
  EXPECT_EQ(of_first("1", 0).lost_reason, "");
}

// CUDA's 0 is GPU 1 now, and its 1 is GPU 2: none of them is what the user named.
TEST(MarkLost, NumbersMeanTheSameGpusAsBeforeTheLoss) {
  const auto usable = [](const char* visible, std::optional<std::uint32_t> ordinal_of_second,
                         std::optional<std::uint32_t> ordinal_of_third) {
    std::string names;
    for (const auto& device : marked(
             {lost_gpu(0), gpu(1, "GPU-b", ordinal_of_second), gpu(2, "GPU-c", ordinal_of_third)},
             {.visible = visible})) {
      if (device.is_usable()) names += device.name() + " ";
    }
    return names;
  };
  EXPECT_EQ(usable("1", std::nullopt, 0), "cuda:1 ");
  EXPECT_EQ(usable("0", 0, std::nullopt), "") << "GPU 1 is not named";
  EXPECT_EQ(usable("2", std::nullopt, std::nullopt), "cuda:2 ");
  EXPECT_EQ(usable("1,2", std::nullopt, 0), "cuda:1 cuda:2 ");
  EXPECT_EQ(usable("GPU-c", std::nullopt, 0), "cuda:2 ");
}

TEST(MarkLost, OneWithoutAUuidIsUsedOnlyAsCudaCountsIt) {
  const auto gpus = marked({lost_gpu(0), gpu(1, std::nullopt, std::nullopt)}, {.visible = "1"});
  EXPECT_EQ(gpus[0].lost_reason, kLost) << "it is why GPU 1 is not found";
  EXPECT_EQ(gpus[1].hidden_by, "CUDA_VISIBLE_DEVICES=1");
}

TEST(MarkLost, ASliceByTheUuidOfItsGpuIsKnown) {
  auto split_gpu = gpu(1, "GPU-b", std::nullopt);
  split_gpu.identity.is_mig_on = true;
  auto slice = gpu(0, "MIG-x", 0);
  slice.identity.parent = "GPU-b";
  slice.identity.gpu_instance = 1;
  slice.identity.compute_instance = 0;
  slice.name = "cuda:1:0";
  const auto of_first = [&](const char* visible) {
    return marked({lost_gpu(0), split_gpu, slice}, {.visible = visible})[0].lost_reason;
  };
  EXPECT_EQ(of_first("MIG-GPU-b/1/0"), "") << "it is another one that is named";
  EXPECT_EQ(of_first("MIG-GPU-a/1/0"), kLost) << "it may be the one";
}

DeviceStatus barred_gpu(std::uint32_t index) {
  auto barred = lost_gpu(index);
  barred.identity.is_barred = true;
  barred.lost_reason = "Insufficient Permissions (NVML 4)";
  return barred;
}

TEST(MarkLost, OneThatOthersMayOpenIsHiddenByItsDriver) {
  const auto gpus = marked({barred_gpu(0), gpu(1, "GPU-b", 0)}, {});
  EXPECT_EQ(gpus[0].lost_reason, "");
  EXPECT_EQ(gpus[0].hidden_by, "its driver: Insufficient Permissions (NVML 4)");
}

// CUDA's 0 was the lost one where another is barred, and the fastest where that is known.
TEST(MarkLost, NumbersAreReadAsCudaCountedBeforeTheLoss) {
  const std::vector<DeviceStatus> one_is_barred{barred_gpu(0), lost_gpu(1), gpu(2, "GPU-c", 0)};
  EXPECT_EQ(marked(one_is_barred, {.visible = "0"})[1].lost_reason, kLost);
  auto slow = gpu(0, "GPU-a", 0);
  slow.identity.multiprocessor_count = 20;
  const std::vector<DeviceStatus> last_is_lost{slow, gpu(1, "GPU-b", std::nullopt), lost_gpu(2)};
  EXPECT_EQ(marked(last_is_lost, {.visible = "1"})[2].lost_reason, "")
      << "GPU 1 is 0, and 1 is GPU 0";
  EXPECT_EQ(marked(last_is_lost, {.visible = "2"})[2].lost_reason, kLost);
}

Inventory machine_of_two() {
  Inventory inventory;
  inventory.cpus.resize(1);
  inventory.cpus[0].cpus = {0};
  inventory.gpus.resize(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    inventory.gpus[i].kind = DeviceKind::Cuda;
    inventory.gpus[i].index = i;
  }
  inventory.gpus[0].lost_reason = kLost;
  return inventory;
}

TEST(LostGpusNotice, SaysWhichIsLostAndWhereTheWorkGoes) {
  auto machine = machine_of_two();
  for (const auto* names : {"auto", "cuda", "1xcuda", "cpu:0,cuda"}) {
    EXPECT_EQ(lost_gpus_notice(names, machine, {machine.gpus[1]}),
              "cuda:0 is lost: GPU is lost (NVML 15); the work goes to cuda:1")
        << names;
  }
  machine.gpus.resize(1);
  EXPECT_EQ(lost_gpus_notice("auto", machine, machine.cpus),
            "cuda:0 is lost: GPU is lost (NVML 15); the work goes to cpu:0");
}

TEST(LostGpusNotice, IsNoneWhereEachDeviceIsNamedOrNoneIsLost) {
  auto machine = machine_of_two();
  for (const auto* names : {"cuda:1", "cpu", "2xcpu", "GPU-b"}) {
    EXPECT_FALSE(lost_gpus_notice(names, machine, {machine.gpus[1]})) << names;
  }
  machine.gpus[0].lost_reason.clear();
  EXPECT_FALSE(lost_gpus_notice("auto", machine, machine.gpus));
}

// Two of three are wanted: GPU 2 matters only where it stands in for one before it.
TEST(LostGpusNotice, IsNoneOfOneThatWouldNotHaveBeenTaken) {
  auto machine = machine_of_two();
  machine.gpus.push_back(machine.gpus[1]);
  machine.gpus[2].index = 2;
  const auto last_two = std::vector<Device>{machine.gpus[1], machine.gpus[2]};
  EXPECT_TRUE(lost_gpus_notice("2xcuda", machine, last_two));
  EXPECT_TRUE(lost_gpus_notice("auto", machine, last_two, 2));
  machine.gpus[0].lost_reason.clear();
  machine.gpus[2].lost_reason = kLost;
  const auto first_two = std::vector<Device>{machine.gpus[0], machine.gpus[1]};
  EXPECT_FALSE(lost_gpus_notice("2xcuda", machine, first_two));
  EXPECT_FALSE(lost_gpus_notice("auto", machine, first_two, 2));
  EXPECT_FALSE(lost_gpus_notice("cuda", machine, {machine.gpus[0]}, 1));
  EXPECT_EQ(lost_gpus_notice("auto", machine, first_two, 3),
            "cuda:2 is lost: GPU is lost (NVML 15); the work goes to cuda:0, cuda:1");
  machine.gpus = {machine.gpus[2]};
  EXPECT_EQ(lost_gpus_notice("auto", machine, machine.cpus, 1),
            "cuda:2 is lost: GPU is lost (NVML 15); the work goes to cpu:0");
}

class LostGpusHere : public testing::Test {
 protected:
  ~LostGpusHere() override {
    ::unsetenv("FAKENVML_SCENARIO");
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    std::filesystem::remove(scenario_);
  }

  void play(const std::string& gpus) const {
    std::ofstream(scenario_) << R"({"fake_nvml": 1, "gpus": [)" + gpus + "]}";
    ::setenv("FAKENVML_SCENARIO", scenario_.c_str(), 1);
  }

  Result<FoundMachine> find(const std::string& gpus) const {
    play(gpus);
    const SteadyClock clock;
    return find_machine(config(), clock, true);
  }

  static Result<ChosenMachine> choose(const std::string& machine) {
    const SteadyClock clock;
    return choose_machine(machine, config(), clock);
  }

  static Config config() {
    ConfigSources sources;
    sources.flags = {{SettingId::NvmlPath, MUSTER_BINARY_DIR "/lib/libfakenvml.so", "--nvml-path"}};
    sources.working_folder = "/";
    return *Config::load(sources);
  }

  const std::filesystem::path scenario_ = std::filesystem::path(testing::TempDir()) /
                                          ("lost_gpus." + std::to_string(::getpid()) + ".json");
};

TEST_F(LostGpusHere, AreMarkedInTheWordsOfTheDriver) {
  const auto found = find(R"({"model": "T4"}, {"model": "T4", "lost": {"from": 0}})");
  ASSERT_TRUE(found) << found.error().message;
  const auto& machine = found->inventory;
  ASSERT_EQ(machine.gpus.size(), 2U);
  EXPECT_EQ(machine.gpus[0].lost_reason, "");
  EXPECT_EQ(machine.gpus[1].lost_reason, kLost);
  const auto chosen = chosen_devices(config(), "auto", machine);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(lost_gpus_notice("auto", machine, *chosen),
            "cuda:1 is lost: GPU is lost (NVML 15); the work goes to cuda:0");
  const auto refused = chosen_devices(config(), "cuda:1", machine);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "cuda:1 is lost: GPU is lost (NVML 15); usable: cuda:0");
}

TEST_F(LostGpusHere, TheFirstOfTwoKeepsItsNumber) {
  const auto found = find(R"({"model": "T4", "lost": {"from": 0}}, {"model": "T4"})");
  ASSERT_TRUE(found) << found.error().message;
  const auto& machine = found->inventory;
  ASSERT_EQ(machine.gpus.size(), 2U);
  EXPECT_EQ(machine.gpus[0].lost_reason, kLost);
  EXPECT_TRUE(machine.gpus[1].is_usable());
  const auto refused = chosen_devices(config(), "cuda:0", machine);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "cuda:0 is lost: GPU is lost (NVML 15); usable: cuda:1");
}

TEST_F(LostGpusHere, TheFirstOfTwoKeepsItsPlaceInTheVariable) {
  const std::string first_is_lost = R"({"model": "T4", "lost": {"from": 0}}, {"model": "T4"})";
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  const auto named = find(first_is_lost);
  ASSERT_TRUE(named) << named.error().message;
  const auto refused = chosen_devices(config(), "cuda", named->inventory);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cuda needs a GPU, and there is none: cuda:0 is lost: GPU is lost (NVML 15); cuda:1 is "
            "hidden by CUDA_VISIBLE_DEVICES=0");
  ::setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  const auto found = find(first_is_lost);
  ASSERT_TRUE(found) << found.error().message;
  const auto chosen = chosen_devices(config(), "cuda:1", found->inventory);
  ASSERT_TRUE(chosen) << chosen.error().message;
  const auto hidden = chosen_devices(config(), "cuda:0", found->inventory);
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().message, "cuda:0 is hidden by CUDA_VISIBLE_DEVICES=1; visible: cuda:1");
}

TEST_F(LostGpusHere, AreNoMachineToPlanForNorAreOnesThatCannotBeUsed) {
  play(R"({"model": "T4", "lost": {"from": 0}}, {"model": "T4"},
          {"model": "T4", "errors": {"nvmlDeviceGetHandleByIndex_v2": "NO_PERMISSION"}})");
  const auto chosen = choose("here");
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->lost_gpus, "cuda:0 is lost: GPU is lost (NVML 15); the work goes to cuda:1");
  EXPECT_EQ(chosen->machine.devices.size(), 1U);
}

TEST_F(LostGpusHere, AreToldWhereAMachineIsNamedByThem) {
  play(R"({"model": "T4", "lost": {"from": 0}}, {"model": "T4"})");
  EXPECT_EQ(choose("2xcuda").error().message,
            "2xcuda asks for more GPUs than there are: cuda:1; cuda:0 is lost: GPU is lost (NVML "
            "15)");
  EXPECT_EQ(choose("cuda:1,GPU-5e00").error().message,
            "no GPU has this UUID: GPU-5e00; GPUs: cuda:0, cuda:1; cuda:0 is lost: GPU is lost "
            "(NVML 15)");
  EXPECT_TRUE(choose("no-such").error().message.starts_with("--machine no-such: no such file"));
}

TEST_F(LostGpusHere, TheOnlyOneIsToldUnlessItIsHidden) {
  const auto found = find(R"({"model": "T4", "lost": {"from": 0}})");
  ASSERT_TRUE(found) << found.error().message;
  const auto& machine = found->inventory;
  const auto chosen = chosen_devices(config(), "auto", machine);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->front().kind, DeviceKind::Cpu);
  EXPECT_TRUE(lost_gpus_notice("auto", machine, *chosen));
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const auto hidden = find(R"({"model": "T4", "lost": {"from": 0}})");
  ASSERT_TRUE(hidden) << hidden.error().message;
  EXPECT_FALSE(lost_gpus_notice("auto", hidden->inventory, *chosen));
}

}  // namespace
}  // namespace muster
