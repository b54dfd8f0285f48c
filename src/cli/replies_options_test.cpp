// What `muster generate --prompts` tells its job of a worker's memory.

#include "cli/replies_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "coordinator/decoder_fixture.h"
#include "serving/decoder_memory.h"

namespace muster {
namespace {

TEST(RepliesOptions, TheWeightsAreNotLeftToKeysAndValues) {
  const auto folder =
      std::filesystem::path(testing::TempDir()) / ("replies_options." + std::to_string(::getpid()));
  write_counting_decoder(folder);
  // 17,056 weights (serving/decoder_memory_test.cpp), and a step.
  constexpr std::uint64_t kWeights = 48 * 32 + 2 * (3 * 1024 + 3 * 48 * 32 + 2 * 32) + 32;
  for (const auto precision : {DecoderPrecision::Fp32, DecoderPrecision::Bf16}) {
    const std::uint64_t element = precision == DecoderPrecision::Fp32 ? 4 : 2;
    EXPECT_GT(bytes_beside_cache(folder, precision), element * kWeights);
    EXPECT_EQ(bytes_beside_cache(folder, precision),
              decoder_demand(folder, precision, 128)->total());
  }
  EXPECT_EQ(bytes_beside_cache(folder / "none", DecoderPrecision::Own), 0U);
  std::filesystem::remove_all(folder);
}

// As of --devices cpu:0,cpu:1,cpu:2 where the first node has fewer cores left than the others.
TEST(RepliesOptions, TheDeviceWithTheMostCoresIsMeasured) {
  std::vector<Device> devices(3);
  devices[0].cpus = {0};
  devices[1].cpus = {2, 3};
  devices[2].cpus = {4, 5};
  EXPECT_EQ(&device_to_measure(devices), &devices[1]);
  devices.resize(1);
  EXPECT_EQ(&device_to_measure(devices), &devices[0]);
}

}  // namespace
}  // namespace muster
