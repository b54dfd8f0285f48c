#include "hw/device_names.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

using Cpus = std::vector<std::uint32_t>;

Device cpu(std::uint32_t index, Cpus cpus) {
  Device device;
  device.index = index;
  device.cpus = std::move(cpus);
  return device;
}

Device gpu(std::uint32_t index, const char* uuid) {
  Device device;
  device.kind = DeviceKind::Cuda;
  device.index = index;
  device.uuid = uuid;
  return device;
}

// Two nodes with three and two cores of two threads each, and two GPUs.
Inventory two_gpu_machine() {
  Inventory inventory;
  inventory.allowed_cpus = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  inventory.core_count = 5;
  inventory.cpus = {cpu(0, {0, 2, 4}), cpu(1, {6, 8})};
  inventory.gpus = {gpu(0, "GPU-5e00aa"), gpu(1, "GPU-5e00bb")};
  return inventory;
}

Inventory cpu_machine() {
  auto inventory = two_gpu_machine();
  inventory.gpus.clear();
  inventory.gpu_absent_reason = "no NVIDIA driver (libnvidia-ml.so.1)";
  return inventory;
}

std::string names(const Result<std::vector<Device>>& devices) {
  if (!devices) return devices.error().message;
  std::string text;
  for (const auto& device : *devices) {
    if (!text.empty()) text += ' ';
    text += device.name();
  }
  return text;
}

TEST(ParseDevices, UnderstandsEveryForm) {
  struct Case {
    const char* text;
    const char* names;
  };
  const auto machine = two_gpu_machine();
  for (const auto& [text, expected] : {
           Case{"auto", "cuda:0 cuda:1"},
           Case{"cuda", "cuda:0 cuda:1"},
           Case{"1xcuda", "cuda:0"},
           Case{"cuda:1,cuda:0", "cuda:1 cuda:0"},
           Case{"cpu", "cpu:0 cpu:1"},
           Case{"cpu:1", "cpu:1"},
           Case{"CPU:1", "cpu:1"},
           Case{"2xcpu, cuda:0", "cpu:0 cpu:1 cuda:0"},
           Case{"GPU-5e00bb", "cuda:1"},
           Case{"gpu-5E00b", "cuda:1"},
       }) {
    EXPECT_EQ(names(parse_devices(text, machine, {})), expected) << text;
  }
  EXPECT_EQ(names(parse_devices("auto", cpu_machine(), {})), "cpu:0 cpu:1");
}

Inventory standin_machine() {
  auto inventory = two_gpu_machine();
  for (std::uint32_t i = 0; i < 3; ++i) {
    auto& device = inventory.standins.emplace_back();
    device.kind = DeviceKind::Standin;
    device.index = i;
  }
  return inventory;
}

TEST(ParseDevices, StandinsAreThereForWhoNamesThem) {
  const auto machine = standin_machine();
  EXPECT_EQ(names(parse_devices("2xstandin", machine, {})), "standin:0 standin:1");
  EXPECT_EQ(names(parse_devices("standin:2,cpu:0", machine, {})), "standin:2 cpu:0");
  EXPECT_EQ(names(parse_devices("standin", machine, {})), "standin:0 standin:1 standin:2");
  EXPECT_EQ(names(parse_devices("auto", machine, {})), "cuda:0 cuda:1");
  EXPECT_FALSE(may_name_gpus("2xstandin,cpu:0"));
}

TEST(ParseDevices, StandinsThatAreNotThereAreRefusedWithTheReason) {
  const auto machine = standin_machine();
  EXPECT_EQ(names(parse_devices("4xstandin", machine, {})),
            "4xstandin asks for more stand-in devices than there are: standin:0, standin:1, "
            "standin:2");
  EXPECT_EQ(names(parse_devices("standin:3", machine, {})),
            "no such device: standin:3; there is standin:0, standin:1, standin:2");
  const auto none = parse_devices("2xstandin", two_gpu_machine(), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(
      none.error().message,
      "2xstandin needs libmuster-standin.so beside muster-worker: it is built with the tests, "
      "and in no package");
}

TEST(ParseDevices, SharesTheCoresEvenlyWithoutOverlap) {
  // Five cores 0 2 4 6 8 in two shares: floor(5/2) = 2 and 3.
  const auto devices = parse_devices("2xcpu", cpu_machine(), {});
  ASSERT_TRUE(devices);
  EXPECT_EQ((*devices)[0].cpus, (Cpus{0, 2}));
  EXPECT_EQ((*devices)[1].cpus, (Cpus{4, 6, 8}));
  const auto one = parse_devices("1xcpu", cpu_machine(), {});
  ASSERT_TRUE(one);
  EXPECT_EQ((*one)[0].cpus, (Cpus{0, 2, 4, 6, 8}));
}

TEST(ParseDevices, UsesEveryThreadWhenTheCoresDoNotSuffice) {
  const auto devices = parse_devices("6xcpu", cpu_machine(), {});
  ASSERT_TRUE(devices) << devices.error().message;
  EXPECT_EQ((*devices)[0].cpus, (Cpus{0}));     // [0, 10/6)
  EXPECT_EQ((*devices)[5].cpus, (Cpus{8, 9}));  // [50/6, 10)
}

TEST(ParseDevices, StaysWithinAQuotaEvenThen) {
  auto machine = cpu_machine();
  machine.cpu_limit_cores = 5.0;
  EXPECT_EQ(names(parse_devices("6xcpu", machine, {})),
            "6xcpu asks for more devices than this process has: 5 cores");
}

TEST(ParseDevices, BoundsTheCoresOfACpuDevice) {
  const auto devices = parse_devices("2xcpu,cuda:0", two_gpu_machine(), 1);
  ASSERT_TRUE(devices) << devices.error().message;
  EXPECT_EQ((*devices)[0].cpus, (Cpus{0}));
  EXPECT_EQ((*devices)[1].cpus, (Cpus{4}));
  EXPECT_EQ(names(parse_devices("2xcpu", cpu_machine(), 3)),
            "cores per device must be 1 to what cpu:0 has, 2 cores: 3");
}

// Long because it is one table of cases.
TEST(ParseDevices, NamesWhatIsWrongAndWhatIsThere) {
  struct Case {
    const char* text;
    ErrorKind kind;
    const char* message;
  };
  const auto machine = two_gpu_machine();
  for (const auto& [text, kind, message] : {
           Case{"cdua:0", ErrorKind::InvalidArgument,
                "unknown device \"cdua:0\": did you mean cuda:0?"},
           Case{"gibberish", ErrorKind::InvalidArgument,
                "unknown device \"gibberish\": say auto, cpu, cpu:0, 2xcpu, cuda:0 or the UUID of "
                "a GPU"},
           Case{"gpu", ErrorKind::InvalidArgument, "unknown device \"gpu\": did you mean cuda?"},
           Case{"GPU:1", ErrorKind::InvalidArgument,
                "unknown device \"GPU:1\": did you mean cuda:1?"},
           Case{"2cpu", ErrorKind::InvalidArgument, "unknown device \"2cpu\": did you mean 2xcpu?"},
           Case{"2xgpu", ErrorKind::InvalidArgument,
                "unknown device \"2xgpu\": did you mean 2xcuda?"},
           Case{"cuda1", ErrorKind::InvalidArgument,
                "unknown device \"cuda1\": did you mean cuda:1?"},
           Case{"all", ErrorKind::InvalidArgument, "unknown device \"all\": did you mean auto?"},
           Case{"0,1", ErrorKind::InvalidArgument,
                "unknown device \"0\": did you mean cuda:0,cuda:1?"},
           Case{"cpu:0,1", ErrorKind::InvalidArgument,
                "unknown device \"1\": did you mean cpu:0,cpu:1?"},
           Case{"cpu:0-1", ErrorKind::InvalidArgument,
                "unknown device \"cpu:0-1\": did you mean cpu:0,cpu:1?"},
           Case{"cpu:0-4000000000", ErrorKind::InvalidArgument,
                "unknown device \"cpu:0-4000000000\": say auto, cpu, cpu:0, 2xcpu, cuda:0 or the "
                "UUID of a GPU"},
           Case{"cuda:7", ErrorKind::NotFound, "no such device: cuda:7; there is cuda:0, cuda:1"},
           Case{"3xcuda", ErrorKind::NotFound,
                "3xcuda asks for more GPUs than there are: cuda:0, cuda:1"},
           Case{"cpu:2", ErrorKind::NotFound, "no such device: cpu:2; there is cpu:0, cpu:1"},
           Case{"11xcpu", ErrorKind::InvalidArgument,
                "11xcpu asks for more devices than this process has: 5 cores"},
           Case{"0xcpu", ErrorKind::InvalidArgument,
                "the number of devices must be 1 to 1024: \"0xcpu\""},
           Case{"cpu:0,cpu:0", ErrorKind::InvalidArgument,
                "a device is named twice: cpu:0 in \"cpu:0,cpu:0\""},
           Case{"cuda:0,GPU-5e00aa", ErrorKind::InvalidArgument,
                "a device is named twice: cuda:0 in \"cuda:0,GPU-5e00aa\""},
           Case{"GPU-5e00", ErrorKind::InvalidArgument,
                "\"GPU-5e00\" fits more than one GPU: cuda:0, cuda:1"},
           Case{"GPU-77", ErrorKind::NotFound,
                "no GPU has this UUID: GPU-77; GPUs: cuda:0, cuda:1"},
           Case{"sim:8xH100-80G", ErrorKind::Unsupported,
                "simulated machines plan and schedule; they cannot run a model: sim:8xH100-80G"},
           Case{"rocm:0", ErrorKind::Unsupported,
                "muster runs on cpu and cuda devices; it cannot run on rocm:0"},
           Case{"cpu:0,", ErrorKind::InvalidArgument,
                "an empty device name in \"cpu:0,\": say auto, 2xcpu or cuda:0"},
       }) {
    SCOPED_TRACE(text);
    const auto devices = parse_devices(text, machine, {});
    ASSERT_FALSE(devices);
    EXPECT_EQ(devices.error().kind, kind);
    EXPECT_EQ(devices.error().message, message);
  }
}

TEST(ParseDevices, GivesTheReasonWhyThereIsNoGpu) {
  const auto devices = parse_devices("cuda:0", cpu_machine(), {});
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(devices.error().message,
            "cuda:0 needs a GPU, and there is none: no NVIDIA driver (libnvidia-ml.so.1)");
}

TEST(MayNameGpus, IsFalseOnlyForCpus) {
  EXPECT_FALSE(may_name_gpus("2xcpu"));
  EXPECT_FALSE(may_name_gpus("cpu:0,cpu:1"));
  EXPECT_TRUE(may_name_gpus("auto"));
  EXPECT_TRUE(may_name_gpus("cpu,cuda:0"));
  EXPECT_TRUE(may_name_gpus("GPU-5e"));
}

Device slice(std::uint32_t gpu_index, std::uint32_t number, const char* uuid) {
  auto device = gpu(gpu_index, uuid);
  device.slice = number;
  return device;
}

TEST(ParseDevices, NamesTheSlicesOfASplitGpu) {
  auto machine = two_gpu_machine();
  machine.gpus = {gpu(0, "GPU-5e00aa"), slice(1, 0, "MIG-77"), slice(1, 2, "MIG-78")};
  EXPECT_EQ(names(parse_devices("auto", machine, {})), "cuda:0 cuda:1:0 cuda:1:2");
  EXPECT_EQ(names(parse_devices("cuda:1:2,cuda:0", machine, {})), "cuda:1:2 cuda:0");
  EXPECT_EQ(names(parse_devices("MIG-77", machine, {})), "cuda:1:0");
  EXPECT_EQ(names(parse_devices("cuda:1", machine, {})),
            "cuda:1 is split into MIG slices: say cuda:1:0, cuda:1:2");
  EXPECT_EQ(names(parse_devices("cuda:1:1", machine, {})),
            "no such device: cuda:1:1; there is cuda:0, cuda:1:0, cuda:1:2");
  EXPECT_EQ(names(parse_devices("cuda:0:0", machine, {})),
            "no such device: cuda:0:0; there is cuda:0, cuda:1:0, cuda:1:2");
}

TEST(ParseDevices, LeavesOutWhatTheEnvironmentHides) {
  auto machine = two_gpu_machine();
  machine.gpus[0].hidden_by = "CUDA_VISIBLE_DEVICES=1";
  EXPECT_EQ(names(parse_devices("auto", machine, {})), "cuda:1") << "and it keeps its name";
  EXPECT_EQ(names(parse_devices("cuda", machine, {})), "cuda:1");
  EXPECT_EQ(names(parse_devices("1xcuda", machine, {})), "cuda:1");
  for (const std::string text : {"cuda:0", "GPU-5e00a"}) {
    EXPECT_EQ(names(parse_devices(text, machine, {})),
              text + " is hidden by CUDA_VISIBLE_DEVICES=1; visible: cuda:1");
  }
  machine.gpus[1].hidden_by = machine.gpus[0].hidden_by = "CUDA_VISIBLE_DEVICES=";
  EXPECT_EQ(names(parse_devices("auto", machine, {})), "cpu:0 cpu:1");
  EXPECT_EQ(
      names(parse_devices("cuda", machine, {})),
      "cuda needs a GPU, and there is none: cuda:0 is hidden by CUDA_VISIBLE_DEVICES=; cuda:1 "
      "is hidden by CUDA_VISIBLE_DEVICES=");
}

TEST(ParseDevices, SaysOfEachHiddenGpuByWhat) {
  auto machine = two_gpu_machine();
  machine.gpus[0].hidden_by = "its driver: Insufficient Permissions (NVML 4)";
  machine.gpus[1].hidden_by = "CUDA_VISIBLE_DEVICES=7";
  EXPECT_EQ(names(parse_devices("cuda", machine, {})),
            "cuda needs a GPU, and there is none: cuda:0 is hidden by its driver: Insufficient "
            "Permissions (NVML 4); cuda:1 is hidden by CUDA_VISIBLE_DEVICES=7");
}

TEST(ParseDevices, PassesOverALostGpuAndRefusesItByName) {
  auto machine = two_gpu_machine();
  machine.gpus[0].lost_reason = "GPU is lost (NVML 15)";
  EXPECT_EQ(names(parse_devices("auto", machine, {})), "cuda:1") << "and it keeps its name";
  EXPECT_EQ(names(parse_devices("cuda", machine, {})), "cuda:1");
  EXPECT_EQ(names(parse_devices("1xcuda", machine, {})), "cuda:1");
  for (const std::string text : {"cuda:0", "GPU-5e00a"}) {
    const auto refused = parse_devices(text, machine, {});
    EXPECT_EQ(names(refused), text + " is lost: GPU is lost (NVML 15); usable: cuda:1");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::Unavailable);
  }
  EXPECT_EQ(names(parse_devices("2xcuda", machine, {})),
            "2xcuda asks for more GPUs than there are: cuda:1; cuda:0 is lost: GPU is lost "
            "(NVML 15)");
  machine.gpus[0].uuid.reset();  // it was not opened
  EXPECT_EQ(names(parse_devices("GPU-5e00aa", machine, {})),
            "no GPU has this UUID: GPU-5e00aa; GPUs: cuda:0, cuda:1; cuda:0 is lost: GPU is lost "
            "(NVML 15)");
}

TEST(ParseDevices, ASliceOfALostGpuIsLostWithIt) {
  auto machine = two_gpu_machine();
  machine.gpus[1].lost_reason = "GPU is lost (NVML 15)";
  EXPECT_EQ(names(parse_devices("cuda:1:0", machine, {})),
            "cuda:1:0 is lost: GPU is lost (NVML 15); usable: cuda:0");
  EXPECT_EQ(names(parse_devices("cuda:0:0", machine, {})),
            "no such device: cuda:0:0; there is cuda:0");
}

TEST(ParseDevices, WithoutAGpuThatWorksTheDriversWordsSayWhy) {
  auto machine = two_gpu_machine();
  machine.gpus.resize(1);
  machine.gpus[0].lost_reason = "GPU is lost (NVML 15)";
  machine.gpus[0].hidden_by = "its driver, which tells no UUID of it: its number is not certain";
  EXPECT_EQ(names(parse_devices("auto", machine, {})), "cpu:0 cpu:1");
  EXPECT_EQ(names(parse_devices("cuda", machine, {})),
            "cuda needs a GPU, and there is none: cuda:0 is lost: GPU is lost (NVML 15)");
  EXPECT_EQ(names(parse_devices("cuda:0", machine, {})),
            "cuda:0 is lost: GPU is lost (NVML 15); usable: none");
  machine.gpus.push_back(gpu(1, "GPU-5e00bb"));
  machine.gpus[1].hidden_by = "CUDA_VISIBLE_DEVICES=0";
  EXPECT_EQ(names(parse_devices("cuda", machine, {})),
            "cuda needs a GPU, and there is none: cuda:0 is lost: GPU is lost (NVML 15); "
            "cuda:1 is hidden by CUDA_VISIBLE_DEVICES=0");
}

TEST(LostGpus, AreToldEachWithItsDriversWords) {
  auto machine = two_gpu_machine();
  EXPECT_EQ(lost_gpus_text(machine), "");
  machine.gpus[0].lost_reason = "GPU is lost (NVML 15)";
  machine.gpus[1].lost_reason = "Unknown Error (NVML 999)";
  EXPECT_EQ(lost_gpus_text(machine),
            "cuda:0 is lost: GPU is lost (NVML 15); cuda:1 is lost: Unknown Error (NVML 999)");
}

TEST(LostGpus, MatterWhereGpusAreMeantWithoutANumber) {
  for (const auto* text : {"auto", "cuda", "2xcuda", "cpu:0, CUDA"}) {
    EXPECT_TRUE(takes_gpus_there_are(text)) << text;
  }
  for (const auto* text : {"cuda:0", "cpu", "2xcpu", "GPU-5e00aa", "2xstandin", "", "cudda"}) {
    EXPECT_FALSE(takes_gpus_there_are(text)) << text;
  }
  for (const auto* text : {"auto", "cuda", "cpu:0, CUDA"}) {
    EXPECT_TRUE(takes_all_gpus(text)) << text;
  }
  for (const auto* text : {"2xcuda", "cuda:0", "2xcpu", ""}) {
    EXPECT_FALSE(takes_all_gpus(text)) << text;
  }
}

}  // namespace
}  // namespace muster
