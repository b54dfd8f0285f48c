#include "engine/memory_use.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "engine/encoder.h"
#include "engine/encoder_fixture.h"

namespace muster::engine {
namespace {

at::Tensor floats(std::int64_t count) {
  return at::empty({count}, at::TensorOptions().dtype(at::kFloat));
}

class MemoryUseTest : public testing::Test {
 protected:
  MemoryUseTest() { count_memory(); }

  static std::uint64_t live_since(std::uint64_t before) { return memory_use().live_bytes - before; }
};

TEST_F(MemoryUseTest, CountsTheBytesThatWereAskedFor) {
  const auto before = memory_use().live_bytes;
  {
    const auto a = floats(1000);
    EXPECT_EQ(live_since(before), 4000U);
    const auto b = floats(3);
    EXPECT_EQ(live_since(before), 4012U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.const_data_ptr()) % 64, 0U);
    const auto nothing = floats(0);
    EXPECT_EQ(live_since(before), 4012U);
  }
  EXPECT_EQ(live_since(before), 0U);
}

TEST_F(MemoryUseTest, ThePeakIsWhatWasAliveAtOnce) {
  const auto before = memory_use().live_bytes;
  restart_memory_peak();
  { const auto a = floats(1000); }
  {
    const auto b = floats(500);
    const auto c = floats(700);
  }
  EXPECT_EQ(memory_use().peak_bytes - before, 4U * 1200);
  restart_memory_peak();
  EXPECT_EQ(memory_use().peak_bytes, memory_use().live_bytes);
}

TEST_F(MemoryUseTest, CountsOurOwnContainers) {
  const auto before = memory_use().live_bytes;
  {
    std::vector<double, CountedAllocator<double>> values;
    values.reserve(10);
    EXPECT_EQ(live_since(before), 80U);
  }
  EXPECT_EQ(live_since(before), 0U);
}

TEST_F(MemoryUseTest, ManyThreadsLoseNoByte) {
  const auto before = memory_use().live_bytes;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int j = 1; j < 2000; ++j) floats(j);
      });
    }
  }
  EXPECT_EQ(live_since(before), 0U);
}

TEST_F(MemoryUseTest, AnAccountTakesWhatItsThreadTakes) {
  const auto before = memory_use().live_bytes;
  at::Tensor kept;
  {
    const LoadAccount account;
    { const auto gone = floats(500); }
    kept = floats(100);
    EXPECT_EQ(account.use().live_bytes, 400U);
    EXPECT_EQ(account.use().peak_bytes, 2000U);
    std::jthread([] { floats(1); }).join();  // of another thread: not here
    EXPECT_EQ(account.use().peak_bytes, 2000U);
  }
  EXPECT_EQ(live_since(before), 0U);
  {
    const LoadAccount account;
    kept = at::Tensor();
    EXPECT_EQ(account.use().live_bytes, 0U);
  }
  EXPECT_EQ(live_since(before), 0U);
}

TEST_F(MemoryUseTest, AnEncoderReturnsAllThatItTook) {
  const EncoderFixture fixture("mpnet");
  const auto before = memory_use().live_bytes;
  {
    enter_lane();
    const auto encoder = Encoder::load(fixture.options);
    ASSERT_TRUE(encoder);
    EXPECT_GT((*encoder)->weights_bytes(), 0U);
    EXPECT_GT((*encoder)->load_peak_bytes(), 0U);
    const auto loaded = memory_use().live_bytes;
    EXPECT_EQ(loaded, before);  // its weights are on an account of their own
    std::vector<float> rows(fixture.batch().lengths.size() * (*encoder)->dim());
    restart_memory_peak();
    ASSERT_TRUE((*encoder)->encode(fixture.batch(), rows));
    EXPECT_GT(memory_use().peak_bytes, loaded);
    EXPECT_EQ(memory_use().live_bytes, loaded);
  }
  EXPECT_EQ(live_since(before), 0U);
}

}  // namespace
}  // namespace muster::engine
