#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "planner/chain/chain.h"
#include "planner/chain/chain_oracle.h"

// Instances too large to try everything: against another exact method (a table over devices and
// units, no bisection, no windows) and against bounds that are worked out here.
namespace muster {
namespace {

using chain_oracle::Aim;
using chain_oracle::cut_after;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Decoder-like: a light first unit, blocks with a little noise, a heavy last one.
ChainProblem transformer(std::size_t units, const std::vector<double>& speeds,
                         const std::vector<std::uint64_t>& capacity, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  ChainProblem problem;
  problem.capacity = capacity;
  problem.cut_seconds = 0.01;
  problem.tail_extra_bytes = 300;
  std::vector<double> work;
  for (std::size_t u = 0; u < units; ++u) {
    const double weight = u == 0 ? 0.1 : u + 1 == units ? 2.5 : 1.0;
    work.push_back(weight * noise(random));
    problem.bytes.push_back(static_cast<std::uint64_t>(100.0 * noise(random)));
    problem.peak.push_back(u + 1 == units ? 50 : 10);
  }
  for (const auto speed : speeds) {
    auto& row = problem.seconds.emplace_back(work);
    for (auto& seconds : row) seconds *= noise(random) / speed;
  }
  return problem;
}

double extended(double value, double seconds, Aim aim) {
  return aim == Aim::Total ? value + seconds : std::max(value, seconds);
}

// `best[end]` gets better by one device of a class after a prefix that costs `before[begin]`.
void add_device(const ChainProblem& problem, std::uint32_t device_class, Aim aim,
                const std::vector<double>& before, std::vector<double>& best) {
  const auto units = problem.bytes.size();
  for (std::size_t end = 0; end <= units; ++end) best[end] = std::min(best[end], before[end]);
  for (std::size_t begin = 0; begin < units; ++begin) {
    if (before[begin] == kNever) continue;
    double seconds = 0.0;
    std::uint64_t bytes = 0;
    std::uint64_t peak = 0;
    for (auto end = begin + 1; end <= units; ++end) {
      seconds += problem.seconds[device_class][end - 1];
      bytes += problem.bytes[end - 1];
      peak = std::max(peak, problem.peak[end - 1]);
      const auto extra = end == units && begin > 0 ? problem.tail_extra_bytes : 0;
      if (bytes + peak + extra > problem.capacity[device_class]) break;
      best[end] =
          std::min(best[end], extended(before[begin], seconds + cut_after(problem, end), aim));
    }
  }
}

double table_in_order(const ChainProblem& problem, const std::vector<std::uint32_t>& order,
                      Aim aim) {
  std::vector<double> best(problem.bytes.size() + 1, kNever);
  best[0] = 0.0;
  for (const auto c : order) {
    const auto before = best;
    add_device(problem, c, aim, before, best);
  }
  return best.back();
}

// Two classes, any order.
double table_any_order(const ChainProblem& problem, std::uint32_t first, std::uint32_t second,
                       Aim aim) {
  const std::vector<double> nothing(problem.bytes.size() + 1, kNever);
  std::vector<std::vector<double>> row(first + 1, nothing);
  row[0][0] = 0.0;
  for (std::uint32_t j = 0; j <= second; ++j) {
    if (j > 0) {
      for (auto& best : row) {
        const auto before = best;
        add_device(problem, 1, aim, before, best);
      }
    }
    for (std::uint32_t i = 1; i <= first; ++i) add_device(problem, 0, aim, row[i - 1], row[i]);
  }
  return row[first].back();
}

TEST(LargeChain, InOrderEqualsTheTable) {
  std::mt19937_64 random(7);
  double gap = 0.0;
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const auto problem = transformer(120, {1.0, 1.7, 3.1}, {2600, 1500, 1200}, random());
    std::vector<std::uint32_t> order;
    for (int d = 0; d < 12; ++d) order.push_back(static_cast<std::uint32_t>(random() % 3));
    for (const auto aim : {Aim::Slowest, Aim::Total}) {
      const auto wanted = table_in_order(problem, order, aim);
      const auto found = aim == Aim::Slowest ? min_slowest_in_order(problem, order)
                                             : min_total_in_order(problem, order);
      ASSERT_EQ(found.has_value(), wanted != kNever);
      if (!found) continue;
      const auto value = aim == Aim::Slowest ? found->slowest_seconds : found->total_seconds;
      EXPECT_NEAR(value, wanted, 1e-9 * wanted);
      EXPECT_LE(value, 1.001 * found->bound_seconds);
      if (aim == Aim::Slowest) gap = std::max(gap, value / wanted);
    }
  }
  RecordProperty("gap_P1", std::to_string(gap));
}

TEST(LargeChain, AnyOrderEqualsTheTable) {
  double gap = 0.0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const auto problem = transformer(80, {1.0, 2.3}, {1500, 900}, seed);
    const std::vector<std::uint32_t> counts{5, 7};
    for (const auto aim : {Aim::Slowest, Aim::Total}) {
      const auto wanted = table_any_order(problem, counts[0], counts[1], aim);
      const auto found = aim == Aim::Slowest ? min_slowest_any_order(problem, counts)
                                             : min_total_any_order(problem, counts);
      ASSERT_EQ(found.has_value(), wanted != kNever);
      if (!found) continue;
      const auto value = aim == Aim::Slowest ? found->slowest_seconds : found->total_seconds;
      EXPECT_NEAR(value, wanted, 1e-9 * wanted);
      if (aim == Aim::Slowest) gap = std::max(gap, value / wanted);
    }
  }
  EXPECT_GT(gap, 0.0) << "no instance fits";
  RecordProperty("gap_P2", std::to_string(gap));
}

// Ten thousand devices: a greedy walk with a bound a billionth smaller must run out of devices.
TEST(LargeChain, NoWalkSucceedsBelowTheBound) {
  const auto problem = transformer(1000, {1.0, 1.3, 1.9, 2.4}, {3000, 2000, 1500, 1200}, 11);
  std::vector<std::uint32_t> order(10'000);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i % 4);
  // Fewer devices than units, so that the bound is not merely the largest unit.
  for (const std::size_t devices : {300U, 10'000U}) {
    const std::span<const std::uint32_t> used(order.data(), devices);
    const auto found = min_slowest_in_order(problem, used);
    ASSERT_TRUE(found);
    EXPECT_LE(found->slowest_seconds, 1.001 * found->bound_seconds);
    const double bound = found->bound_seconds * (1.0 - 1e-9);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < used.size() && begin < 1000; ++i) {
      auto end = begin;
      for (auto next = begin + 1; next <= 1000; ++next) {
        const auto seconds = chain_oracle::stage_seconds(problem, used[i], begin, next);
        if (seconds && *seconds <= bound) end = next;
        if (next > begin + 40) break;  // no stage holds more
      }
      begin = end;
    }
    EXPECT_LT(begin, 1000U);
  }
}

// 27 million combinations of counts: the best of some orders, and how good it is at worst.
TEST(LargeChain, BeyondTheTableTheSlowestStageComesWithABound) {
  const auto problem = transformer(1000, {1.0, 1.5, 2.0}, {1'000'000, 1'000'000, 1'000'000}, 3);
  const auto found = min_slowest_any_order(problem, std::vector<std::uint32_t>{300, 300, 300});
  ASSERT_TRUE(found);
  EXPECT_EQ(chain_oracle::fault_of(problem, *found,
                                   [&](std::size_t i) { return found->stages[i].device; }),
            "");
  EXPECT_LE(found->bound_seconds, found->slowest_seconds);
  // 999.6 units of work over 300 x (1 + 1.5 + 2) = 1350 of speed, with noise of a tenth both ways.
  EXPECT_GE(found->bound_seconds, 999.6 * 0.81 / 1350.0);
  RecordProperty("gap_P2_beyond", std::to_string(found->slowest_seconds / found->bound_seconds));
}

// Two classes are short and a stage holds a unit or two: 90 million entries.
TEST(LargeChain, BeyondTheTableTheSumComesWithABound) {
  auto problem = transformer(1000, {1.0, 1.5, 2.0}, {250, 170, 170}, 3);
  problem.tail_extra_bytes = 0;
  const auto found = min_total_any_order(problem, std::vector<std::uint32_t>{400, 300, 300});
  ASSERT_TRUE(found);
  EXPECT_EQ(chain_oracle::fault_of(problem, *found,
                                   [&](std::size_t i) { return found->stages[i].device; }),
            "");
  EXPECT_LT(found->bound_seconds, found->total_seconds);
  // All on the fastest class, without a cut.
  EXPECT_GE(found->bound_seconds, 1000 * 0.81 / 2.0);
  RecordProperty("gap_P4_beyond", std::to_string(found->total_seconds / found->bound_seconds));
}

}  // namespace
}  // namespace muster
