// MSER: leave out as many first batches as make the standard error of the rest smallest; too few
// leave the warm-up in, too many leave little to judge by. Batches are medians and outliers are
// clipped, so that one pause does not decide the cut. The search ends at half. What remains must
// not drift: a server that grows slower has no steady part. Source: White 1997, "An effective
// truncation heuristic for bias reduction in simulation output".

#include "bench/statistics/warm_up.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/statistics/tail_tables.h"

namespace muster {
namespace {

constexpr std::size_t kBatchesMost =
    240;  // as found by trial: fewer cut too much of what is steady
constexpr std::size_t kBatchesLeast = 20;
constexpr std::size_t kSamplesPerBatch = 5;  // at least: MSER-5
constexpr std::size_t kDriftGroups = 16;
constexpr double kOutlier = 5;            // robust standard deviations
constexpr double kOutlierShare = 0.05;    // and never less than this share of the median
constexpr double kNormalPerMad = 1.4826;  // standard deviation of a normal law, of its MAD
constexpr double kFurther = 1.25;
constexpr double kDriftMost = 0.05;
constexpr double kConfidence = 0.99;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Bounds by multiplication, so that batches differ by one sample at most.
std::vector<double> batch_medians(std::span<const double> values, std::size_t count) {
  std::vector<double> medians;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = values.size() * i / count;
    const auto end = values.size() * (i + 1) / count;
    medians.push_back(median_of({values.begin() + static_cast<std::ptrdiff_t>(begin),
                                 values.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  return medians;
}

// By the second half, where a run that settles has settled.
void clip_outliers(std::vector<double>& batches) {
  const auto half = batches.begin() + static_cast<std::ptrdiff_t>(batches.size() / 2);
  const double middle = median_of({half, batches.end()});
  std::vector<double> deviations;
  for (auto batch = half; batch != batches.end(); ++batch) {
    deviations.push_back(std::abs(*batch - middle));
  }
  const double width = std::max(kOutlier * kNormalPerMad * median_of(std::move(deviations)),
                                kOutlierShare * std::abs(middle));
  for (double& batch : batches) batch = std::clamp(batch, middle - width, middle + width);
}

// The number of batches to leave out: least squared standard error of the mean of the rest. By
// their distances from one of them: the squares of a series with little noise are all alike, and
// what is left of their difference is what was rounded off.
std::size_t mser_cut(const std::vector<double>& batches) {
  const double origin = batches.back();
  double sum = 0;
  double squares = 0;
  double least = 0;
  std::size_t cut = 0;
  bool is_first = true;
  for (std::size_t left = 1; left <= batches.size(); ++left) {
    const auto begin = batches.size() - left;
    const double distance = batches[begin] - origin;
    sum += distance;
    squares += distance * distance;
    if (begin > batches.size() / 2) continue;
    const auto count = static_cast<double>(left);
    const double error = std::max(0.0, squares - sum * sum / count) / (count * count);
    // The earliest of equal ones: of a series without any noise nothing is cut.
    if (is_first || error <= least) {
      least = error;
      cut = begin;
      is_first = false;
    }
  }
  return cut;
}

struct Drift {
  double share = 0;
  bool is_significant = false;
};

// A least-squares line through group means; groups, because neighbouring batches are alike.
Drift drift_of(std::span<const double> batches) {
  std::vector<double> groups;
  for (std::size_t i = 0; i < kDriftGroups; ++i) {
    const auto begin = batches.size() * i / kDriftGroups;
    const auto end = batches.size() * (i + 1) / kDriftGroups;
    double sum = 0;
    for (auto at = begin; at < end; ++at) sum += batches[at];
    if (end > begin) groups.push_back(sum / static_cast<double>(end - begin));
  }
  const auto count = static_cast<double>(groups.size());
  double mean = 0;
  for (const double group : groups) mean += group / count;
  double across = 0;
  double along = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double x = static_cast<double>(i) - (count - 1) / 2;
    across += x * (groups[i] - mean);
    along += x * x;
  }
  const double slope = across / along;
  double residue = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const double x = static_cast<double>(i) - (count - 1) / 2;
    const double error = groups[i] - mean - slope * x;
    residue += error * error;
  }
  const double slope_error = std::sqrt(residue / (count - 2) / along);
  const double limit = student_quantile(1 - (1 - kConfidence) / 2, count - 2);
  return {.share = mean == 0 ? 0 : slope * (count - 1) / mean,
          .is_significant = std::abs(slope) > limit * slope_error};
}

}  // namespace

// The cut goes somewhat beyond the least error, which tends to come early, but leaves enough
// batches for the test of drift.
SteadyPart find_steady_part(std::span<const double> values) {
  const auto count = std::min(kBatchesMost, values.size() / kSamplesPerBatch);
  if (count < kBatchesLeast) return {};
  auto batches = batch_medians(values, count);
  clip_outliers(batches);
  const auto least_error = mser_cut(batches);
  const auto cut =
      std::min(count - kBatchesLeast / 2,
               static_cast<std::size_t>(std::ceil(static_cast<double>(least_error) * kFurther)));
  const auto drift = drift_of(std::span(batches).subspan(cut));
  const bool is_settled = least_error < count / 2;
  const bool is_drifting = drift.is_significant && std::abs(drift.share) > kDriftMost;
  return {.begin = values.size() * cut / count,
          .is_steady = is_settled && !is_drifting,
          .drift = drift.share};
}

}  // namespace muster
