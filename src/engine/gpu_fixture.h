#pragma once

#include <gtest/gtest.h>

#include "engine/encoder.h"
#include "engine/encoder_fixture.h"
#include "engine/gpu.h"
#include "engine/gpu_device.h"

namespace muster::engine {

/// A test on the GPU under test (gpu_under_test), in a lane of it; skipped where it cannot be
/// opened. Base: testing::Test, or testing::TestWithParam of something.
template <typename Base>
class OnGpu : public Base {
 protected:
  void SetUp() override {
    if (const auto gpu = open_gpu(gpu_under_test()); !gpu) GTEST_SKIP() << gpu.error().message;
    enter_lane(gpu_under_test());
  }

  // Other processes shall find memory: a test that takes nearly all of it leaves it with the
  // allocator. A test that is skipped comes here too: where no device is open there is none.
  void TearDown() override {
    if (testing::Test::IsSkipped()) return;
    const auto device = torch_device(gpu_under_test());
    wait_for_stream(device);  // here the stand-in tells of memory that was given back in use
    release_cached_memory(device);
  }
};

}  // namespace muster::engine
