// A decoder's attention on a GPU, or on the stand-in for one (GPU_TEST_DEVICE).

#include "engine/ops/cached_attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "engine/encoder.h"
#include "engine/encoder_fixture.h"
#include "engine/gpu_device.h"
#include "engine/gpu_fixture.h"

namespace muster::engine {
namespace {

class GpuDecoderAttentionTest : public OnGpu<testing::Test> {
 protected:
  static at::TensorOptions of(at::ScalarType type) {
    return at::TensorOptions().dtype(type).device(torch_device(gpu_under_test()));
  }

  // Of one sequence: offsets from 0.
  static at::Tensor offsets(std::int64_t count) {
    return at::arange(0, count + 1, count, at::TensorOptions().dtype(at::kInt))
        .to(torch_device(gpu_under_test()));
  }

  const c10::InferenceMode inference_;
};

// Keys alike are seen alike, so a row is the mean of the values that it sees: of ones, one. Three
// keys are fewer than the window, and the stand-in refuses a window that flash attention drops.
TEST_F(GpuDecoderAttentionTest, AWindowIsThereForShortSequencesToo) {
  const auto query = at::ones({2, 4, 8}, of(at::kBFloat16));
  const auto keys = at::ones({3, 2, 8}, of(at::kBFloat16));
  const auto result =
      attend_cached(query, keys, keys, {offsets(2), offsets(3), 2, 3}, {.scale = 1, .window = 11});
  EXPECT_TRUE(to_host(result).equal(at::ones({2, 4, 8}, at::kBFloat16)));
}

// On CUDA with more heads than a block has rows (64) the last ones would be read past the end; the
// stand-in refuses a head that has no memory of its own.
TEST_F(GpuDecoderAttentionTest, OneHeadOfKeysServesManyHeadsInFloat32) {
  const auto query = at::ones({1, 80, 8}, of(at::kFloat));
  const auto keys = at::ones({2, 1, 8}, of(at::kFloat));
  const auto result = attend_cached(query, keys, keys, {offsets(1), offsets(2), 1, 2}, {});
  EXPECT_TRUE(to_host(result).equal(at::ones({1, 80, 8}, at::kFloat)));
}

}  // namespace
}  // namespace muster::engine
