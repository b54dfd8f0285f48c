#include "containers/container_devices.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

Device gpu(std::uint32_t index, const std::string& uuid) {
  Device device;
  device.kind = DeviceKind::Cuda;
  device.index = index;
  device.model = "NVIDIA A10G";
  device.uuid = uuid;
  device.compute_capability = 86;
  return device;
}

ContainerHost with_gpus() {
  ContainerHost host;
  for (std::uint32_t i = 0; i < 4; ++i) {
    host.inventory.gpus.push_back(
        gpu(i, "GPU-" + std::string(1, static_cast<char>('a' + i)) + "0"));
  }
  host.rocm.gpus = {{"/dev/dri/renderD128"}, {"/dev/dri/renderD129"}};
  host.rocm.group_ids = {44, 109};
  return host;
}

ContainerHost without_gpus() {
  ContainerHost host;
  host.inventory.gpu_absent_reason = "no NVIDIA driver (libnvidia-ml.so.1)";
  return host;
}

using Words = std::vector<std::string>;

Words ids(const Words& words, const ContainerHost& host = with_gpus(), bool elsewhere = false) {
  const auto chosen = parse_container_devices(words, host, elsewhere);
  if (!chosen) return {"error: " + chosen.error().message};
  Words found;
  for (const auto& device : chosen->devices) found.push_back(device.id);
  return found;
}

void expect_error(const Words& words, const ContainerHost& host, ErrorKind kind,
                  const std::string& message, bool elsewhere = false) {
  const auto chosen = parse_container_devices(words, host, elsewhere);
  ASSERT_FALSE(chosen) << message;
  EXPECT_EQ(chosen.error().kind, kind);
  EXPECT_EQ(chosen.error().message, message);
}

TEST(ParseContainerDevices, NamesGpusByUuidInTheGivenOrder) {
  EXPECT_EQ(ids({"cuda:2,cuda:0"}), (Words{"GPU-c0", "GPU-a0"}));
  EXPECT_EQ(ids({"cuda:2", "cuda:0"}), (Words{"GPU-c0", "GPU-a0"}));
  EXPECT_EQ(ids({"2xcuda"}), (Words{"GPU-a0", "GPU-b0"}));
  EXPECT_EQ(ids({"cuda"}), (Words{"GPU-a0", "GPU-b0", "GPU-c0", "GPU-d0"}));
  EXPECT_EQ(ids({"GPU-d0"}), (Words{"GPU-d0"}));
  const auto chosen = parse_container_devices({"cuda:2"}, with_gpus(), false);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->devices[0].host_place, 2U);
  EXPECT_EQ(chosen->devices[0].model, "NVIDIA A10G");
  EXPECT_EQ(chosen->devices[0].compute_capability, 86U);
}

TEST(ParseContainerDevices, KnowsAmdSlicesCdiAndNone) {
  EXPECT_EQ(ids({"rocm:1"}), (Words{"/dev/dri/renderD129"}));
  EXPECT_EQ(ids({"/dev/dri/renderD129"}), (Words{"/dev/dri/renderD129"}));
  EXPECT_EQ(ids({"MIG-11,MIG-22"}), (Words{"MIG-11", "MIG-22"}));
  EXPECT_EQ(ids({"nvidia.com/gpu=0"}), (Words{"nvidia.com/gpu=0"}));
  EXPECT_TRUE(ids({"none"}).empty());
  EXPECT_TRUE(ids({"cpu"}).empty());
  const auto rocm = parse_container_devices({"rocm"}, with_gpus(), false);
  ASSERT_TRUE(rocm);
  EXPECT_EQ(rocm->devices.size(), 2U);
  EXPECT_EQ(rocm->group_ids, (std::vector<std::uint32_t>{44, 109}));
  const auto slices = parse_container_devices({"2xmig-1g.5gb"}, with_gpus(), false);
  ASSERT_TRUE(slices);
  ASSERT_EQ(slices->devices.size(), 2U);
  EXPECT_EQ(slices->devices[1].mig_profile, "1g.5gb");
}

TEST(ParseContainerDevices, TakesNamesOfCpusAsTheWholeProcessor) {
  for (const Words& words : {Words{"cpu:0"}, Words{"2xcpu"}, Words{"cpu:0,cpu:1"}}) {
    const auto chosen = parse_container_devices(words, without_gpus(), false);
    ASSERT_TRUE(chosen) << words[0] << ": " << chosen.error().message;
    EXPECT_TRUE(chosen->devices.empty());
    EXPECT_EQ(chosen->notes,
              Words{"the server runs on the processor, in one container with all cores that docker "
                    "gives it: only muster's own (--api muster) keeps to " +
                    words[0]});
  }
  EXPECT_TRUE(parse_container_devices({"cpu"}, without_gpus(), false)->notes.empty());
  EXPECT_EQ(parse_container_devices({"cpu:0", "cuda:0"}, with_gpus(), false).error().message,
            "\"none\" stands alone: a server cannot run on GPUs and on the processor too");
  for (const auto* word : {"cpu:", "cpu:x", "0xcpu", "xcpu"}) {
    EXPECT_FALSE(parse_container_devices({word}, with_gpus(), false)) << word;
  }
}

TEST(ParseContainerDevices, TakesNumbersAsWrittenForAnotherMachine) {
  EXPECT_EQ(ids({"cuda:3,cuda:1"}, without_gpus(), true), (Words{"3", "1"}));
  EXPECT_EQ(ids({"2xrocm"}, without_gpus(), true),
            (Words{"/dev/dri/renderD128", "/dev/dri/renderD129"}));
  EXPECT_EQ(ids({"GPU-far"}, without_gpus(), true), (Words{"GPU-far"}));
  const auto chosen = parse_container_devices({"cuda:3"}, without_gpus(), true);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->notes.size(), 1U);
  EXPECT_EQ(chosen->devices[0].host_place, 3U);
}

// The very name that `muster devices` shows of a slice.
TEST(ParseContainerDevices, TakesASliceByItsName) {
  auto host = with_gpus();
  Device slice = host.inventory.gpus.front();
  slice.slice = 0;
  slice.uuid = "MIG-0e5f5ec4-90d5-5e2b-9b5f-9f4ce22aa9ee";
  host.inventory.gpus.front() = slice;
  const auto chosen = parse_container_devices({"cuda:0:0"}, host, false);
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_EQ(chosen->devices.size(), 1U);
  EXPECT_EQ(chosen->devices[0].kind, ContainerDeviceKind::Mig);
  EXPECT_EQ(chosen->devices[0].id, *slice.uuid);
  expect_error({"cuda:0:7"}, host, ErrorKind::NotFound,
               "no slice cuda:0:7 on this machine; of another one say its UUID (MIG-…)");
}

TEST(ParseContainerDevices, SaysWhichDeviceIsNotThere) {
  expect_error({"cuda:7"}, with_gpus(), ErrorKind::NotFound,
               "no such device: cuda:7; there is cuda:0, cuda:1, cuda:2, cuda:3");
  // Nor for text, where this machine has GPUs: it would be a mistake here.
  expect_error({"cuda:7"}, with_gpus(), ErrorKind::NotFound,
               "no such device: cuda:7; there is cuda:0, cuda:1, cuda:2, cuda:3", true);
  expect_error({"5xcuda"}, with_gpus(), ErrorKind::NotFound,
               "no such device: 5xcuda; there is cuda:0, cuda:1, cuda:2, cuda:3");
  expect_error({"cuda:0"}, without_gpus(), ErrorKind::Unavailable,
               "no GPU for cuda:0: no NVIDIA driver (libnvidia-ml.so.1); --dry-run prints the "
               "command for another machine");
  expect_error({"rocm:0"}, without_gpus(), ErrorKind::Unavailable,
               "no GPU for rocm:0: no AMD driver (/sys/class/kfd); --dry-run prints the command "
               "for another machine");
  expect_error({"cuda"}, without_gpus(), ErrorKind::InvalidArgument,
               "how many? This machine has no cuda device; say 2xcuda or cuda:0", true);
}

// Without its UUID it would go to docker as its number, which may be another one's there.
TEST(ParseContainerDevices, PassesOverALostGpuAndRefusesItByName) {
  const std::string told = "cuda:1 is lost: GPU is lost (NVML 15)";
  auto host = with_gpus();
  host.inventory.gpus[1].uuid.reset();
  host.inventory.gpus[1].lost_reason = "GPU is lost (NVML 15)";
  EXPECT_EQ(ids({"cuda"}, host), (Words{"GPU-a0", "GPU-c0", "GPU-d0"}));
  EXPECT_EQ(ids({"2xcuda"}, host), (Words{"GPU-a0", "GPU-c0"}));
  EXPECT_EQ(ids({"cuda:2"}, host), (Words{"GPU-c0"}));
  EXPECT_EQ(parse_container_devices({"cuda"}, host, false)->notes, Words{told});
  EXPECT_TRUE(parse_container_devices({"cuda:2"}, host, false)->notes.empty());
  expect_error({"cuda:1"}, host, ErrorKind::Unavailable, told);
  expect_error({"4xcuda"}, host, ErrorKind::NotFound,
               "no such device: 4xcuda; there is cuda:0, cuda:2, cuda:3; " + told);
  host.inventory.gpus = {host.inventory.gpus[1]};
  expect_error({"cuda"}, host, ErrorKind::Unavailable, "no GPU for cuda: " + told);
}

TEST(ParseContainerDevices, RefusesALostGpuByItsUuidToo) {
  auto host = with_gpus();
  host.inventory.gpus[0].lost_reason = "GPU is lost (NVML 15)";
  Device slice = gpu(1, "MIG-11");
  slice.slice = 0;
  slice.lost_reason = "GPU is lost (NVML 15)";
  host.inventory.gpus[1] = slice;
  for (const std::string word : {"GPU-a0", "MIG-11", "cuda:1:0"}) {
    expect_error({word}, host, ErrorKind::Unavailable, word + " is lost: GPU is lost (NVML 15)");
  }
}

TEST(ParseContainerDevices, NamesTheNearestForm) {
  const auto host = with_gpus();
  expect_error({"2"}, host, ErrorKind::InvalidArgument,
               "unknown device \"2\": did you mean cuda:2?");
  expect_error({"cdua:1"}, host, ErrorKind::InvalidArgument,
               "unknown device \"cdua:1\": did you mean cuda:1?");
  expect_error({"mps:0"}, host, ErrorKind::Unsupported,
               "a container cannot use Apple's GPU: no runtime hands Metal through");
  expect_error({"none,cuda:0"}, host, ErrorKind::InvalidArgument,
               "\"none\" stands alone: a server cannot run on GPUs and on the processor too");
  EXPECT_FALSE(parse_container_devices({"nvidia.com/gpu=all"}, host, false));
  EXPECT_FALSE(parse_container_devices({""}, host, false));
}

// 13.0 GB of weights, as OPT-6.7B has in 16 bits.
constexpr std::uint64_t kNeeded = 13'316'947'968;
constexpr std::uint64_t kGiB = 1ULL << 30;

std::vector<DeviceCandidate> candidates(const std::vector<std::uint64_t>& gib) {
  std::vector<DeviceCandidate> result;
  for (std::size_t i = 0; i < gib.size(); ++i) {
    result.push_back({"cuda:" + std::to_string(i), gib[i] * kGiB});
  }
  return result;
}

TEST(ChooseDevices, TakesTheFewestWithTheMostMemory) {
  const ModelHeads heads{32, 32, 32};
  EXPECT_EQ(*choose_devices(candidates({8, 24, 16}), kNeeded, ServerApi::Tgi, heads),
            (Words{"cuda:1"}));
  EXPECT_EQ(*choose_devices(candidates({8, 4, 8}), kNeeded, ServerApi::Tgi, heads),
            (Words{"cuda:0", "cuda:2"}));
}

TEST(ChooseDevices, TakesACountThatTheServerCanSplitOver) {
  // Three would hold it, but 32 heads do not divide by 3.
  const ModelHeads heads{32, 32, 32};
  EXPECT_EQ(choose_devices(candidates({5, 5, 5, 5}), kNeeded, ServerApi::Tgi, heads)->size(), 4U);
  EXPECT_EQ(choose_devices(candidates({5, 5, 5, 5}), kNeeded, ServerApi::Vllm, heads)->size(), 3U);
}

TEST(ChooseDevices, SaysWhatIsTooSmall) {
  const auto small = choose_devices(candidates({4, 4}), kNeeded, ServerApi::Tgi, {});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().kind, ErrorKind::ResourceExhausted);
  EXPECT_EQ(small.error().message,
            "the model's weights take 13.3 GB, more than 2 GPUs have together: 8.59 GB");
  const auto one = choose_devices(candidates({8, 8}), kNeeded, ServerApi::Tei, {});
  ASSERT_FALSE(one) << "TEI cannot split";
  EXPECT_EQ(choose_devices({}, kNeeded, ServerApi::Tgi, {}).error().kind, ErrorKind::Unavailable);
}

}  // namespace
}  // namespace muster
