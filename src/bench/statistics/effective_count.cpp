// Averages neighbours again and again. While samples are alike, the variance of the mean that the
// averages suggest still grows; a chi-squared test over this and all coarser levels says where it
// has stopped.
#include "bench/statistics/effective_count.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "bench/statistics/tail_tables.h"

namespace muster {
namespace {

constexpr std::size_t kBlocksLeast = 16;
constexpr double kConfidence = 0.99;

struct Level {
  std::size_t count = 0;
  double variance = 0;
  double likeness = 0;  // of neighbours; chi-squared with one degree where there is none
};

double mean_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

Level level_of(std::span<const double> values, double mean) {
  const auto count = static_cast<double>(values.size());
  double squares = 0;
  double products = 0;
  double before = 0;
  for (const double value : values) {
    const double deviation = value - mean;
    squares += deviation * deviation;
    products += deviation * before;
    before = deviation;
  }
  const double variance = squares / count;
  const double covariance = products / count;
  // Of independent samples the covariance is -variance / count in the mean.
  const double excess = covariance + variance * (count - 1) / (count * count);
  const double likeness = variance > 0 ? count * excess * excess / (variance * variance) : 0;
  return {.count = values.size(), .variance = variance, .likeness = likeness};
}

std::vector<Level> levels_of(std::span<const double> values, double mean) {
  std::vector<double> blocks(values.begin(), values.end());
  std::vector<Level> levels;
  do {
    levels.push_back(level_of(blocks, mean));
    const auto half = blocks.size() / 2;
    for (std::size_t i = 0; i < half; ++i) blocks[i] = (blocks[2 * i] + blocks[2 * i + 1]) / 2;
    blocks.resize(half);
  } while (blocks.size() >= kBlocksLeast);
  return levels;
}

// The finest level from which on no likeness is left; else the coarsest.
std::size_t first_independent(const std::vector<Level>& levels) {
  double likeness = 0;
  std::size_t found = levels.size() - 1;
  for (std::size_t i = levels.size(); i-- > 0;) {
    likeness += levels[i].likeness;
    const auto degrees = static_cast<double>(levels.size() - i);
    if (likeness < chi_squared_quantile(kConfidence, degrees)) found = i;
  }
  return found;
}

}  // namespace

SeriesMean mean_of_series(std::span<const double> values) {
  MUSTER_CHECK(!values.empty());
  const double mean = mean_of(values);
  const auto levels = levels_of(values, mean);
  const auto found = values.size() < 2 * kBlocksLeast ? 0 : first_independent(levels);
  // One level further where there is likeness: what the test no longer sees is still there.
  const auto chosen = found == 0 ? 0 : std::min(found + 1, levels.size() - 1);
  const auto& level = levels[chosen];
  const auto blocks = static_cast<double>(level.count);
  return {.mean = mean,
          .variance = levels.front().variance,
          .variance_of_mean = level.variance / std::max(blocks - 1, 1.0),
          .block_count = level.count,
          .is_independent = chosen == 0};
}

}  // namespace muster
