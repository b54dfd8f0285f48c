#include "engine/cuda.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace muster::engine {
namespace {

TEST(CudaClass, NamesTheCardItsMultiprocessorsAndTheDriver) {
  const auto of_one = cuda_class_of({"NVIDIA GeForce RTX 3080", 13000, 68});
  EXPECT_TRUE(of_one.starts_with("NVIDIA GeForce RTX 3080/68 SMs/13.0")) << of_one;
  EXPECT_NE(of_one, cuda_class_of({"NVIDIA GeForce RTX 3080", 13000, 70}));
  EXPECT_NE(of_one, cuda_class_of({"NVIDIA GeForce RTX 3080", 12080, 68}));
}

TEST(CudaClass, NamesAVariableThatChangesProducts) {
  const char* before = ::getenv("NVIDIA_TF32_OVERRIDE");
  if (before != nullptr) GTEST_SKIP() << "it is set for this run";
  const CudaDeviceFacts facts{"NVIDIA H200", 13000, 132};
  const auto without = cuda_class_of(facts);
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const auto with = cuda_class_of(facts);
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
  EXPECT_EQ(without.find("TF32"), std::string::npos) << without;
  EXPECT_NE(with.find("/NVIDIA_TF32_OVERRIDE=0"), std::string::npos) << with;
}

}  // namespace
}  // namespace muster::engine
