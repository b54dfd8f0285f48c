#include "views/devices_view.h"

#include <gtest/gtest.h>

#include "views/snapshot_fixture.h"
#include "views/topology_view.h"

namespace muster {
namespace {

constexpr std::size_t kAnyWidth = 200;
constexpr TerminalInfo kWide{.width = kAnyWidth};

TEST(DevicesView, ShowsGpusTheirSlicesAndCpus) {
  auto snapshot = machine_of(1);
  snapshot.devices[0].identity.is_mig_on = true;
  snapshot.devices[0].identity.cuda_ordinal = std::nullopt;
  snapshot.devices.insert(snapshot.devices.begin() + 1, h200_slice(0, 0));
  EXPECT_EQ(
      describe_devices(snapshot, kWide),
      R"(device    model                             memory   in use  driver     state  CUDA    UUID
cuda:0    NVIDIA H200                       151 GB  98.0 GB  590.48.01  up     slices  GPU-00000000-0000-0000-0000-000000000000
cuda:0:0  MIG 1g.18gb                      18.0 GB  9.00 GB  590.48.01  up     0       MIG-00000000-0000-0000-0000-000000000000
cpu:0     AMD EPYC 9654 96-Core Processor   256 GB  34.0 GB             up
)");
}

TEST(DevicesView, SaysWhatIsHiddenAndWhatIsWrong) {
  auto snapshot = machine_of(3);
  snapshot.devices[0].identity.cuda_ordinal = std::nullopt;
  take_down(snapshot.devices[1], "GPU is lost (NVML 15)");
  snapshot.devices[2].health.push_back({"ecc", HealthState::Unfit, "2 uncorrected memory errors"});
  const auto text = describe_devices(snapshot, kWide);
  EXPECT_NE(text.find("up     hidden  GPU-"), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          "hidden: CUDA programs started here do not see it, by CUDA_VISIBLE_DEVICES or by MIG\n"),
      std::string::npos);
  EXPECT_NE(text.find("\ncuda:1 is down: GPU is lost (NVML 15)\n"), std::string::npos);
  EXPECT_NE(text.find("\ncuda:2: 2 uncorrected memory errors\n"), std::string::npos);
  EXPECT_EQ(text.find("cuda:1: "), std::string::npos);  // said once
}

// As a driver lists one that it cannot open.
TEST(DevicesView, AGpuThatIsLostHasNoBlanksAndIsHiddenByNobody) {
  auto snapshot = machine_of(1);
  auto& gpu = snapshot.devices[0];
  take_down(gpu, "GPU is lost (NVML 15)");
  gpu.lost_reason = gpu.down_reason;
  gpu.identity = {};
  gpu.identity.device.kind = DeviceKind::Cuda;
  gpu.identity.driver_version = "590.48.01";
  const auto text = describe_devices(snapshot, kWide);
  EXPECT_NE(text.find("\ncuda:0  -  "), std::string::npos) << text;
  EXPECT_NE(text.find("  590.48.01  down   -     -\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ncuda:0 is down: GPU is lost (NVML 15)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("hidden"), std::string::npos) << text;
}

TEST(DevicesView, BreaksNothingOnANarrowTerminal) {
  auto snapshot = machine_of(1);
  snapshot.devices[0].identity.cuda_ordinal = std::nullopt;
  EXPECT_EQ(describe_devices(snapshot, {.width = 60}),
            R"(device  model           memory   in use  state  CUDA
cuda:0  NVIDIA H200     151 GB  98.0 GB  up     hidden
    UUID GPU-00000000-0000-0000-0000-000000000000
cpu:0   AMD EPYC 9654…  256 GB  34.0 GB  up
hidden: CUDA programs started here do not see it, by
  CUDA_VISIBLE_DEVICES or by MIG
)");
}

TEST(DevicesView, ColoursStates) {
  auto snapshot = machine_of(1);
  take_down(snapshot.devices[0], "GPU is lost (NVML 15)");
  const auto text = describe_devices(snapshot, {.width = 200, .has_color = true});
  EXPECT_NE(text.find("\x1b[0;1;38;5;202mdown\x1b[0m"), std::string::npos) << text;
  EXPECT_NE(text.find("\x1b[0;1;38;5;36mup\x1b[0m"), std::string::npos) << text;
}

TEST(DevicesView, SaysWhyThereIsNoGpu) {
  const auto text = describe_devices(machine_of(0), kWide);
  EXPECT_NE(text.find("\nno GPU: no NVIDIA driver (libnvidia-ml.so.1)\n"), std::string::npos);
}

TEST(TopologyView, ShowsLinksNodesAndALegendOfWhatOccurs) {
  auto snapshot = machine_of(3);
  const LinkLabel sys{LinkKind::Sys, 0};
  snapshot.links.labels[2] = sys;
  snapshot.links.labels[6] = sys;
  snapshot.devices[1].identity.numa_node = std::nullopt;
  snapshot.devices[2].identity.numa_node = 7;  // of which no CPU may be used
  EXPECT_EQ(describe_topology(snapshot, kWide),
            R"(        cuda:0  cuda:1  cuda:2  NUMA  nearest CPUs
cuda:0  X       NV18    SYS     0     cpu:0 (0-3)
cuda:1  NV18    X       NV18    -     -
cuda:2  SYS     NV18    X       7     -

X    the device itself
NV#  so many NVLinks
SYS  the link between NUMA nodes
)");
}

TEST(TopologyView, HeadsColumnsByNumbersWhereNamesDoNotFit) {
  const auto text = describe_topology(machine_of(12), {.width = 100});
  EXPECT_NE(text.find("         0     1     2 "), std::string::npos) << text;
}

TEST(TopologyView, SaysWhatIsNotKnown) {
  EXPECT_EQ(describe_topology(machine_of(0), kWide),
            "no GPU: no NVIDIA driver (libnvidia-ml.so.1)\n");
  auto snapshot = machine_of(2);
  snapshot.links = {};
  EXPECT_EQ(describe_topology(snapshot, kWide),
            "the driver does not tell how these GPUs are linked\n");
}

}  // namespace
}  // namespace muster
