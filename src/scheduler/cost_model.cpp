#include "scheduler/cost_model.h"

#include <algorithm>

namespace muster {
namespace {

constexpr double kNewWeight = 0.2;  // about the last five batches count
constexpr double kSlack = 5;
constexpr Duration kSilenceMin = std::chrono::seconds(1);

}  // namespace

void CostModel::learn(std::uint64_t token_count, Duration engine) {
  if (token_count == 0) return;
  const double latest = seconds(engine) / static_cast<double>(token_count);
  seconds_per_token_ = seconds_per_token_
                           ? *seconds_per_token_ + kNewWeight * (latest - *seconds_per_token_)
                           : latest;
}

std::optional<Duration> CostModel::predict(std::uint64_t token_count) const {
  if (!seconds_per_token_) return std::nullopt;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(*seconds_per_token_ * static_cast<double>(token_count)));
}

Duration CostModel::silence_allowed(std::uint64_t token_count) const {
  const auto predicted = predict(token_count);
  if (!predicted) return kFirstBatchAllowance;
  return std::max(kSilenceMin, std::chrono::duration_cast<Duration>(*predicted * kSlack));
}

}  // namespace muster
