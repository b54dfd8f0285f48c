#include "engine/product_bench.h"

#include <gtest/gtest.h>

#include "engine/encoder.h"
#include "engine/encoder_fixture.h"

namespace muster::engine {
namespace {

TEST(ProductBench, EveryPrecisionOfTheCpuGivesExactlyTheProduct) {
  for (const auto precision : precisions_to_try(DeviceKind::Cpu)) {
    const TestProduct product{.size = 256, .seed = 5, .precision = precision};
    const auto bench = ProductBench::load(product, DeviceKind::Cpu, 2);
    ASSERT_TRUE(bench) << bench.error().message;
    for (std::uint32_t lane = 0; lane < 2; ++lane) {
      ASSERT_TRUE((*bench)->multiply(lane));
      const auto images = (*bench)->images(lane);
      ASSERT_TRUE(images);
      auto expected = expected_image(product, 0);
      const auto second = expected_image(product, 1);
      expected.insert(expected.end(), second.begin(), second.end());
      EXPECT_EQ(*images, expected) << precision_name(precision);
    }
  }
}

TEST(GpuProductTest, EveryPrecisionOfTheGpuGivesExactlyTheProduct) {
  const TestProduct fp32{.size = 1024, .seed = 5};
  const auto probe = ProductBench::load(fp32, gpu_under_test(), 1);
  if (!probe) GTEST_SKIP() << probe.error().message;
  for (const auto precision : precisions_to_try(gpu_under_test())) {
    const TestProduct product{.size = 1024, .seed = 5, .precision = precision};
    const auto bench = ProductBench::load(product, gpu_under_test(), 1);
    ASSERT_TRUE(bench) << bench.error().message;
    ASSERT_TRUE((*bench)->multiply(0));
    auto expected = expected_image(product, 0);
    const auto second = expected_image(product, 1);
    expected.insert(expected.end(), second.begin(), second.end());
    const auto images = (*bench)->images(0);
    ASSERT_TRUE(images);
    EXPECT_EQ(*images, expected) << precision_name(precision);
  }
}

}  // namespace
}  // namespace muster::engine
