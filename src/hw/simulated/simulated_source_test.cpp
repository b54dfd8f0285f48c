#include <gtest/gtest.h>

#include <set>

#include "hw/device_sources.h"
#include "hw/testdata/tree.h"

namespace muster {
namespace {

class StepClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void set(double time_s) {
    now_ = TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time_s)));
  }

 private:
  TimePoint now_{};
};

// Two H100s over NVLink, one slice of a GPU that is not listed, an unknown GPU, and a CPU.
Machine machine() {
  Machine made;
  made.name = "sim:test";
  made.classes = {{"H100-80G", DeviceKind::Cuda, 80ULL << 30, {}, {}},
                  {"Nobody's GPU", DeviceKind::Cuda, 8ULL << 30, {}, {}},
                  {"Some CPU", DeviceKind::Cpu, 64ULL << 30, {}, {}}};
  for (const std::uint32_t type : {0, 0, 1, 1, 2}) {
    MachineDevice device;
    device.device_class = type;
    device.kind = made.classes[type].kind;
    device.index = type == 2 ? 0 : static_cast<std::uint32_t>(made.devices.size());
    made.devices.push_back(device);
  }
  made.devices[3].parent = "GPU-x";
  made.devices[4].core_count = 4;
  made.nodes = {{.first_device = 0, .device_count = 5, .links = 0, .host_bytes = 0}};
  return made;
}

LinkMatrix links() {
  const LinkLabel self{LinkKind::Self, 0};
  const LinkLabel near{LinkKind::NvLink, 18};
  const LinkLabel far{LinkKind::Sys, 0};
  return {3, {self, near, far, near, self, far, far, far, self}};
}

DeviceSample visit(DeviceSampler& sampler) {
  CountingWatch watch;
  DeviceSample sample;
  sampler.sample(all_tiers(), watch, sample);
  return sample;
}

double value(const DeviceSample& sample, Reading reading) {
  EXPECT_TRUE(sample.readings.has(reading)) << reading_info(reading).name;
  return sample.readings.get(reading).value_or(-1e9);
}

TEST(OpenSimulated, ListsGpusThenSlicesThenCpusUnderStableNames) {
  StepClock clock;
  const auto made = machine();
  const auto matrix = links();
  const auto source = open_simulated(made, matrix, clock, 1);
  ASSERT_EQ(source.samplers.size(), 5U);
  EXPECT_EQ(source.links.device_count, 3U);
  std::set<std::string> uuids;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& device = source.samplers[i]->identity().device;
    ASSERT_TRUE(device.uuid);
    EXPECT_TRUE(device.uuid->starts_with("SIM-")) << *device.uuid;
    EXPECT_EQ(device.uuid->size(), 40U);
    uuids.insert(*device.uuid);
    const auto again = open_simulated(made, matrix, clock, 1);
    EXPECT_EQ(again.samplers[i]->identity().device.uuid, device.uuid);
  }
  EXPECT_EQ(uuids.size(), 4U);
  EXPECT_EQ(source.samplers[0]->identity().device.model, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(source.samplers[1]->identity().device.pci_address, "00000000:02:00.0");
  EXPECT_EQ(source.samplers[3]->identity().parent, "GPU-x");
  EXPECT_EQ(source.samplers[3]->identity().device.index, 0U);
  EXPECT_EQ(source.samplers[4]->identity().device.kind, DeviceKind::Cpu);
}

TEST(OpenSimulated, CountsTheEnergyOfThePowerItShows) {
  StepClock clock;
  const auto made = machine();
  const auto matrix = links();
  const auto source = open_simulated(made, matrix, clock, 9);
  auto& gpu = *source.samplers[0];
  CountingWatch watch;
  double joules = 0;
  clock.set(100.0);
  const auto before = gpu.energy_joules(watch);
  for (double t = 100.0005; t < 160.0; t += 0.001) {
    clock.set(t);
    DeviceSample sample;
    gpu.sample(TierSet().set(0), watch, sample);
    joules += 0.001 * value(sample, Reading::GpuPowerInstant);
  }
  clock.set(160.0);
  const auto after = gpu.energy_joules(watch);
  ASSERT_TRUE(before && after);
  EXPECT_NEAR(*after - *before, joules, 0.5);
  clock.set(161.0);
  EXPECT_NEAR(value(visit(gpu), Reading::GpuPowerAverage),
              gpu.energy_joules(watch).value_or(0) - *after, 1e-6)
      << "the energy of the last second";
}

TEST(OpenSimulated, KeepsEveryReadingPlausible) {
  StepClock clock;
  const auto made = machine();
  const auto matrix = links();
  const auto source = open_simulated(made, matrix, clock, 2);
  double last_energy = 0;
  for (double t = 1.0; t < 600.0; t += 7.0) {
    clock.set(t);
    const auto sample = visit(*source.samplers[0]);
    EXPECT_GE(value(sample, Reading::GpuPowerInstant), 77.9);
    EXPECT_LE(value(sample, Reading::GpuPowerInstant), 700.01);
    EXPECT_GT(value(sample, Reading::GpuEnergy), last_energy);
    last_energy = value(sample, Reading::GpuEnergy);
    EXPECT_EQ(value(sample, Reading::GpuMemoryUsed) + value(sample, Reading::GpuMemoryFree) +
                  value(sample, Reading::GpuMemoryReserved),
              80.0 * (1ULL << 30));
    EXPECT_GE(value(sample, Reading::GpuTemperatureCore), 28.0);
    EXPECT_LE(value(sample, Reading::GpuTemperatureCore), 60.0);
    ASSERT_TRUE(sample.processes);
    EXPECT_EQ(sample.processes->empty(), value(sample, Reading::GpuMemoryUsed) == 0.0);
    EXPECT_TRUE(sample.errors.empty());
  }
}

TEST(OpenSimulated, LeavesOutWhatItDoesNotKnow) {
  StepClock clock;
  clock.set(50.0);
  const auto made = machine();
  const auto matrix = links();
  const auto source = open_simulated(made, matrix, clock, 1);
  CountingWatch watch;
  const auto unknown = visit(*source.samplers[2]);
  EXPECT_TRUE(unknown.readings.has(Reading::GpuUtilization));
  EXPECT_FALSE(unknown.readings.has(Reading::GpuPowerInstant)) << "no data sheet says";
  EXPECT_FALSE(unknown.readings.has(Reading::GpuNvlinkSent)) << "it has no such link";
  EXPECT_FALSE(source.samplers[2]->energy_joules(watch));
  EXPECT_GT(value(visit(*source.samplers[0]), Reading::GpuNvlinkSent), 0.0);
  const auto slice = visit(*source.samplers[3]);
  EXPECT_TRUE(slice.readings.has(Reading::GpuMemoryUsed));
  EXPECT_FALSE(slice.readings.has(Reading::GpuTemperatureCore)) << "its GPU's";
}

TEST(OpenSimulated, TakesTheLinksOfTheWholeMachineToo) {
  StepClock clock;
  const auto made = machine();
  LinkMatrix all{5, std::vector<LinkLabel>(25, {LinkKind::Sys, 0})};
  all.labels[0 * 5 + 1] = all.labels[1 * 5 + 0] = {LinkKind::NvLink, 18};
  all.labels[2 * 5 + 1] = all.labels[1 * 5 + 2] = {LinkKind::Phb, 0};
  const auto source = open_simulated(made, all, clock, 1);
  ASSERT_EQ(source.links.device_count, 3U) << "without the slice and the CPU";
  EXPECT_EQ(source.links.labels[1].kind, LinkKind::NvLink);
  EXPECT_EQ(source.links.labels[5].kind, LinkKind::Phb) << "GPUs 1 and 2";
}

TEST(OpenSimulated, LoadsTheCoresOfACpu) {
  StepClock clock;
  clock.set(33.0);
  const auto made = machine();
  const auto matrix = links();
  const auto source = open_simulated(made, matrix, clock, 1);
  const auto sample = visit(*source.samplers[4]);
  ASSERT_EQ(sample.core_loads.size(), 4U);
  double sum = 0;
  for (const auto load : sample.core_loads) sum += load;
  EXPECT_NEAR(value(sample, Reading::CpuUtilization), sum / 4.0, 1e-6);
  EXPECT_EQ(value(sample, Reading::HostMemorySize), 64.0 * (1ULL << 30));
}

}  // namespace
}  // namespace muster
