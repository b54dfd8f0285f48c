#include "engine/decoder/cache_fetches.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace muster::engine {
namespace {

std::vector<const std::byte*> all_of(FetchRuns* runs) {
  std::vector<const std::byte*> taken;
  while (const auto* run = FetchRuns::take(runs)) taken.push_back(run);
  return taken;
}

// A run is 4,096 bytes: of 5,000 bytes there are two, the second with what lies behind them.
TEST(CacheFetchesTest, EachMemberHasItsRunsInEveryLayer) {
  const std::vector<std::byte> pool(100'000);
  CacheFetches fetches(2);
  fetches.add(0, {pool.data(), 4096});
  fetches.add(1, {pool.data() + 8192, 5000});
  fetches.add(0, {pool.data() + 20'000, 4096});
  using Runs = std::vector<const std::byte*>;
  for (const std::size_t offset : {0U, 40'000U}) {
    fetches.begin_layer(offset);
    const auto* base = pool.data() + offset;
    EXPECT_EQ(all_of(fetches.of(0)), (Runs{base, base + 20'000}));
    EXPECT_EQ(all_of(fetches.of(1)), (Runs{base + 8192, base + 12'288}));
    EXPECT_EQ(all_of(fetches.of(0)), Runs{});
  }
}

TEST(CacheFetchesTest, SoManyRunsAreEnough) {
  const std::vector<std::byte> pool(4096);
  CacheFetches fetches(2);
  for (std::size_t i = 0; i < CacheFetches::kRunsMost + 5; ++i) fetches.add(1, pool);
  fetches.begin_layer(0);
  EXPECT_EQ(all_of(fetches.of(1)).size(), CacheFetches::kRunsMost);
  EXPECT_TRUE(all_of(fetches.of(0)).empty());
}

TEST(CacheFetchesTest, OfNothingThereIsNoRun) {
  CacheFetches fetches(1);
  EXPECT_EQ(FetchRuns::take(fetches.of(0)), nullptr);
  fetches.begin_layer(64);
  EXPECT_EQ(FetchRuns::take(fetches.of(0)), nullptr);
  EXPECT_EQ(FetchRuns::take(nullptr), nullptr);
  const std::vector<std::byte> pool(4096);
  fetches.add(0, pool);
  fetches.begin_layer(0);
  fetches.clear();
  EXPECT_EQ(FetchRuns::take(fetches.of(0)), nullptr);
}

}  // namespace
}  // namespace muster::engine
