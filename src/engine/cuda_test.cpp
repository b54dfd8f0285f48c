#include "engine/cuda.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>
#include <string>

namespace muster::engine {
namespace {

TEST(CudaClass, NamesTheCardItsMultiprocessorsAndTheDriver) {
  const auto of_one = cuda_class_of({"NVIDIA GeForce RTX 3080", 13000, 68});
  EXPECT_TRUE(of_one.starts_with("NVIDIA GeForce RTX 3080/68 SMs/13.0")) << of_one;
  EXPECT_NE(of_one, cuda_class_of({"NVIDIA GeForce RTX 3080", 13000, 70}));
  EXPECT_NE(of_one, cuda_class_of({"NVIDIA GeForce RTX 3080", 12080, 68}));
}

TEST(CudaClass, NamesAVariableThatChangesProducts) {
  const CudaDeviceFacts facts{"NVIDIA B200", 13000, 148};
  for (const std::string name :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"}) {
    if (::getenv(name.c_str()) != nullptr) GTEST_SKIP() << name << " is set for this run";
    EXPECT_EQ(cuda_class_of(facts).find(name), std::string::npos);
    ::setenv(name.c_str(), "1", 1);
    EXPECT_NE(cuda_class_of(facts).find("/" + name + "=1"), std::string::npos) << name;
    ::unsetenv(name.c_str());
  }
}

TEST(CudaClass, OfNoDeviceIsNoneAndTheReasonIsTheDrivers) {
  const auto found = find_cuda_device();
  if (found) GTEST_SKIP() << "there is a GPU here";
  EXPECT_EQ(cuda_class(), "none");
  EXPECT_EQ(found.error().kind, ErrorKind::Unavailable);
  const auto& reason = found.error().message;
  EXPECT_TRUE(reason.find("libcuda.so.1") != std::string::npos ||
              reason.find("CUDA error ") != std::string::npos)
      << reason;
}

TEST(TimedKernels, AreDroppedAndNamedWhereTheyWereAskedFor) {
  const std::string name = "PYTORCH_TUNABLEOP_ENABLED";
  if (::getenv(name.c_str()) != nullptr) GTEST_SKIP() << name << " is set for this run";
  EXPECT_EQ(drop_timed_kernels(), std::nullopt);
  ::setenv(name.c_str(), "0", 1);
  EXPECT_EQ(drop_timed_kernels(), std::nullopt) << "as it is anyhow";
  ::setenv(name.c_str(), "1", 1);
  EXPECT_EQ(drop_timed_kernels(), name + "=1");
  EXPECT_EQ(::getenv(name.c_str()), nullptr);
}

}  // namespace
}  // namespace muster::engine
