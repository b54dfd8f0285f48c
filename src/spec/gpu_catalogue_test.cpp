#include "spec/gpu_catalogue.h"

#include <gtest/gtest.h>

#include <set>

namespace muster {
namespace {

TEST(GpuCatalogue, HasASourceForEveryRowAndNoNameTwice) {
  std::set<std::string_view> names;
  for (const auto& gpu : gpu_catalogue()) {
    SCOPED_TRACE(gpu.name);
    EXPECT_TRUE(names.insert(gpu.name).second);
    EXPECT_FALSE(gpu.source.empty());
    EXPECT_GE(gpu.pcie_generation, 3U);
    EXPECT_EQ(gpu.link_count > 0, gpu.link_bytes_per_second > 0.0);
    EXPECT_TRUE(gpu.fabric != GpuFabric::None || gpu.link_count == 0);
    // "…-80G" names what the sheet calls 80 GB; a driver shows at most 80 GiB and no less than
    // seven eighths of it.
    const auto named = std::stoull(std::string(gpu.name.substr(gpu.name.rfind('-') + 1)));
    EXPECT_LE(gpu.memory_bytes, named << 30);
    EXPECT_GE(gpu.memory_bytes, (named << 30) / 8 * 7);
  }
}

TEST(FindGpu, TakesANameInAnyOfItsForms) {
  for (const auto* name : {"H100-80G", "h100-80g", "H100_80GB", "H100 80G"}) {
    const auto found = find_gpu(name);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ((*found)->name, "H100-80G");
  }
  const auto found = find_gpu("h200");
  ASSERT_TRUE(found);
  // Measured: nvidia-smi shows 143771 MiB.
  EXPECT_EQ((*found)->memory_bytes, 150754820096U);
}

TEST(FindGpu, NamesTheNearestOne) {
  const auto wrong = find_gpu("H100-81G");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::NotFound);
  EXPECT_EQ(wrong.error().message, "no such GPU is known: H100-81G: did you mean H100-80G?");
  const auto short_name = find_gpu("4090");
  ASSERT_FALSE(short_name);
  EXPECT_EQ(short_name.error().message, "no such GPU is known: 4090: did you mean RTX4090-24G?");
  const auto unlike = find_gpu("tulip");
  ASSERT_FALSE(unlike);
  EXPECT_EQ(unlike.error().message,
            "no such GPU is known: tulip; names are such as T4-16G, L4-24G, RTX4090-24G, A100-80G, "
            "H100-80G or MI300X-192G");
  const auto beginning = find_gpu("H10");
  ASSERT_FALSE(beginning);
  EXPECT_EQ(beginning.error().message,
            "no such GPU is known: H10: did you mean H100-80G or H100-PCIE-80G or H100-NVL-94G?");
}

TEST(FindGpu, AsksWhichOfSeveralSizes) {
  const auto found = find_gpu("a100");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(found.error().message,
            "the GPU is made with several sizes of memory: a100: write A100-40G or A100-80G");
}

TEST(FindGpu, KnowsWhatTheDriverSays) {
  ASSERT_NE(find_gpu_by_driver_name("NVIDIA H200"), nullptr);
  EXPECT_EQ(find_gpu_by_driver_name("NVIDIA H200")->name, "H200-141G");
  EXPECT_EQ(find_gpu_by_driver_name("NVIDIA H2000"), nullptr);
}

}  // namespace
}  // namespace muster
