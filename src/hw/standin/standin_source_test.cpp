#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "hw/device_sources.h"
#include "spec/standin_device.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class StandinSourceTest : public testing::Test {
 protected:
  StandinSourceTest() { fs::create_directories(folder_); }
  ~StandinSourceTest() override { fs::remove_all(folder_); }

  // As the library leaves it.
  void report(std::uint32_t index, std::uint64_t pid, std::uint64_t taken, std::uint64_t busy_ns,
              std::uint64_t error = 0, std::uint64_t xid = 0, std::uint64_t xid_count = 0) const {
    std::vector<std::uint64_t> numbers{pid, 1000, taken, busy_ns, 0,   0,        0,
                                       0,   0,    error, 0,       xid, xid_count};
    std::ofstream file(folder_ / ("standin-" + std::to_string(index)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(std::uint64_t)));
  }

  static DeviceSample visit(DeviceSampler& sampler, milliseconds at) {
    DeviceSample sample;
    sample.at = TimePoint{} + at;
    NoWatch watch;
    sampler.sample(TierSet{0b111}, watch, sample);
    return sample;
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / ("standins." + std::to_string(::getpid()));
  const std::uint64_t self_ = static_cast<std::uint64_t>(::getpid());
};

TEST_F(StandinSourceTest, WithoutAFileThereIsNothingToWatch) {
  EXPECT_EQ(open_standins(folder_).error().kind, ErrorKind::Unavailable);
}

TEST_F(StandinSourceTest, AFileIsADevice) {
  std::ofstream(folder_ / "standin-3").flush();
  const auto source = open_standins(folder_);
  ASSERT_TRUE(source);
  ASSERT_EQ(source->samplers.size(), 1U);
  EXPECT_EQ(source->samplers[0]->identity().device.name(), "standin:3");
  const auto sample = visit(*source->samplers[0], milliseconds(0));
  EXPECT_EQ(sample.readings.get(Reading::GpuMemoryUsed), 0) << "nobody had it yet";
}

TEST_F(StandinSourceTest, AFileOfSomethingElseIsNoneAndStaysAsItIs) {
  for (const std::size_t length : {1U, 103U, 105U}) {  // a report has 13 numbers of 8 bytes
    std::ofstream(folder_ / "standin-2") << std::string(length, 'a');
    const auto source = open_standins(folder_);
    ASSERT_FALSE(source) << length;
    EXPECT_EQ(source.error().kind, ErrorKind::Unavailable);
    EXPECT_EQ(fs::file_size(folder_ / "standin-2"), length);
  }
}

TEST_F(StandinSourceTest, TellsMemoryAndHowBusyItWasSinceTheLastVisit) {
  report(0, self_, 250, 1'000'000);
  const auto source = open_standins(folder_);
  ASSERT_TRUE(source);
  auto& sampler = *source->samplers[0];
  const auto first = visit(sampler, milliseconds(10));
  EXPECT_FALSE(first.readings.has(Reading::GpuUtilization));
  EXPECT_EQ(first.readings.get(Reading::GpuMemorySize), 1000);
  EXPECT_EQ(first.readings.get(Reading::GpuMemoryUsed), 250);
  EXPECT_EQ(first.readings.get(Reading::GpuMemoryFree), 750);
  report(0, self_, 250, 4'000'000);  // 3 ms of 10
  const auto second = visit(sampler, milliseconds(20));
  EXPECT_DOUBLE_EQ(second.readings.get(Reading::GpuUtilization).value_or(-1), 0.3);
}

TEST_F(StandinSourceTest, AnXidIsAnEventOfItsDeviceAndComesOnce) {
  report(0, self_, 0, 0);
  report(3, self_, 0, 0, 0, 31, 7);
  const auto source = open_standins(folder_);
  ASSERT_TRUE(source);
  ASSERT_TRUE(source->events);
  EXPECT_TRUE(source->events->wait(Duration{0})->empty()) << "older than the watching";
  report(3, self_, 0, 0, 214, 48, 8);
  const auto events = source->events->wait(std::chrono::seconds(10));
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ((*events)[0].device, 1U) << "the second one that is watched";
  EXPECT_EQ((*events)[0].kind, DeviceEventKind::Xid);
  EXPECT_EQ((*events)[0].code, 48U);
  EXPECT_TRUE(source->events->wait(Duration{0})->empty());
}

TEST_F(StandinSourceTest, ADeviceThatFailedIsDownWhileItsProcessLives) {
  report(0, self_, 250, 0, 214);
  const auto source = open_standins(folder_);
  ASSERT_TRUE(source);
  EXPECT_EQ(visit(*source->samplers[0], milliseconds(1)).lost_reason,
            "it computes no more (CUDA error 214)");
  report(0, 0, 250, 0, 214);
  EXPECT_FALSE(visit(*source->samplers[0], milliseconds(2)).lost_reason);
}

}  // namespace
}  // namespace muster
