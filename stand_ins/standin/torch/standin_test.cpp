// The stand-in as torch sees it: planted mistakes of a program are found, and errors are CUDA's.

#include <ATen/ops/cos.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "standin/torch/standin_fixture.h"

namespace muster::standin {
namespace {

TEST_F(StandinTest, WhatGoesToADeviceComesBack) {
  for (const auto type : {c10::kFloat, c10::kHalf, c10::kBFloat16, c10::kInt}) {
    const auto there = values({3, 5}, type).to(device(1));
    EXPECT_EQ(there.device(), device(1));
    EXPECT_TRUE(there.to(c10::kCPU).equal(values({3, 5}, type))) << type;
  }
  EXPECT_EQ(device().str(), "standin:0");
}

TEST_F(StandinTest, ACopyMayConvertAndTranspose) {
  const auto numbers = values({4, 6});
  const auto there = numbers.t().to(at::TensorOptions().device(device()).dtype(c10::kHalf));
  EXPECT_TRUE(
      there.to(c10::kFloat).t().to(c10::kCPU).equal(numbers.to(c10::kHalf).to(c10::kFloat)));
}

TEST_F(StandinTest, MemoryThatWasNotWrittenIsNaN) {
  const auto empty = at::empty({2}, at::TensorOptions().device(device())).to(c10::kCPU);
  EXPECT_TRUE(std::isnan(empty.const_data_ptr<float>()[1]));
}

TEST_F(StandinTest, AForgottenCopyEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto there = values({2}).to(device());
  EXPECT_DEATH(
      {
        volatile float value = *there.const_data_ptr<float>();
        static_cast<void>(value);
      },
      "the host touches memory of a device: it must be copied to the host");
}

TEST_F(StandinTest, AForgottenWaitEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto there = values({2}).to(device());
  auto here = pinned({2});
  here.copy_(there, /*non_blocking=*/true);
  EXPECT_DEATH(
      {
        volatile float value = *here.const_data_ptr<float>();
        static_cast<void>(value);
      },
      "pinned memory that a device may still use: it must wait for the stream");
  wait();
  EXPECT_TRUE(here.equal(values({2})));
}

TEST_F(StandinTest, WritingWhatADeviceStillReadsEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto here = pinned({2});
  here.copy_(values({2}));
  const auto there = here.to(device(), /*non_blocking=*/true);
  EXPECT_DEATH(here.mutable_data_ptr<float>()[0] = 0, "");
  wait();
  here.mutable_data_ptr<float>()[0] = 0;
}

TEST_F(StandinTest, AWrongStreamIsNamedWithBothOperators) {
  const auto before = guard().getStream(device());
  const auto first = take_stream();
  auto sum = values({8}).to(device());
  sum.add_(sum);
  const auto second = take_stream();
  const auto words = words_of([&] { sum.mul(sum); });
  EXPECT_NE(words.find("aten::mul.out on stream " + std::to_string(second.id()) +
                       " of standin:0 reads memory that aten::add.out writes on stream " +
                       std::to_string(first.id()) + " of standin:0"),
            std::string::npos)
      << words;
  c10::Event event(kType);
  event.record(first);
  event.block(second);
  EXPECT_TRUE(sum.mul(sum).to(c10::kCPU).equal(values({8}).mul(4).mul(values({8}))));
  guard().exchangeStream(before);
}

TEST_F(StandinTest, AnOperatorWithoutAKernelIsRefusedByName) {
  const auto there = values({2}).to(device());
  const auto words = words_of([&] { at::cos(there); });
  EXPECT_EQ(words, "the stand-in device has no kernel of aten::cos.out");
}

TEST_F(StandinTest, TensorsOfHostAndDeviceDoNotMix) {
  const auto there = values({2}).to(device());
  EXPECT_NE(words_of([&] { there.add(values({2})); }), "");
}

TEST_F(StandinTest, AFullDeviceThrowsWhatCudaThrows) {
  const auto memory = c10::getDeviceAllocator(kType)->getMemoryInfo(0);
  EXPECT_EQ(memory.second, 1U << 30);
  EXPECT_THROW(
      at::empty({std::int64_t{2} << 30}, at::TensorOptions().dtype(c10::kByte).device(device())),
      c10::OutOfMemoryError);
}

TEST_F(StandinTest, TheAllocatorTellsWhatItHasGivenOut) {
  auto* allocator = c10::getDeviceAllocator(kType);
  allocator->resetPeakStats(1);
  const auto before = allocator->getDeviceStats(1).allocated_bytes[0].current;
  {
    const auto there = at::empty({1000}, at::TensorOptions().device(device(1)));
    EXPECT_EQ(allocator->getDeviceStats(1).allocated_bytes[0].current, before + 4096);
  }
  EXPECT_EQ(allocator->getDeviceStats(1).allocated_bytes[0].current, before);
  EXPECT_EQ(allocator->getDeviceStats(1).allocated_bytes[0].peak, before + 4096);
}

TEST_F(StandinTest, AForkedChildIsRefused) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const auto there = values({2}).to(device());
  EXPECT_EXIT(
      {
        const auto words = words_of([&] { there.clone(); });
        const bool is_refused = words.find("a forked process cannot use") == 0;
        std::_Exit(is_refused ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_TRUE(there.to(c10::kCPU).equal(values({2})));
}

// In a process of its own: the error stays with the process.
TEST_F(StandinTest, AnAssertionOfAKernelEndsTheDeviceForTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr std::int32_t kAssert = 710;  // cudaErrorAssert
  EXPECT_EXIT(
      {
        const auto table = at::zeros({4, 4}, at::TensorOptions().device(device()));
        const auto wrong =
            at::full({1}, 99, at::TensorOptions().dtype(c10::kLong).device(device()));
        const auto rows = table.index_select(0, wrong);
        std::int32_t first = 0;
        std::int32_t second = 0;
        try {
          wait();
        } catch (const c10::AcceleratorError& error) {
          first = error.get_error_code();
        }
        try {
          at::zeros({4}, at::TensorOptions().device(device()));
        } catch (const c10::AcceleratorError& error) {
          second = error.get_error_code();
        }
        std::_Exit(first == kAssert && second == kAssert ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster::standin
