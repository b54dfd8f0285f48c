// The time of a batch by its size. Cost per token is learned for each power of two, because small
// batches pay overhead that large ones do not; between known sizes the time is interpolated, beyond
// them the nearest cost per token holds. An exponential mean follows a device that becomes slower,
// and forgets an outlier after a few batches.

#include "scheduler/cost_model.h"

#include <algorithm>
#include <bit>

namespace muster {
namespace {

constexpr double kNewWeight = 0.2;  // about the last five batches of a size count

std::size_t size_of(std::uint64_t token_count) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(token_count)), 32);
}

}  // namespace

void CostModel::learn(std::uint64_t token_count, Duration engine) {
  if (token_count == 0) return;
  const auto tokens = static_cast<double>(token_count);
  const double latest = seconds(engine) / tokens;
  auto& size = sizes_[size_of(token_count)];
  if (size.is_known) {
    size.seconds_per_token += kNewWeight * (latest - size.seconds_per_token);
    size.tokens += kNewWeight * (tokens - size.tokens);
  } else {
    size = {.is_known = true, .tokens = tokens, .seconds_per_token = latest};
  }
}

std::optional<Duration> CostModel::predict(std::uint64_t token_count) const {
  const auto predicted = predict_seconds(static_cast<double>(token_count), size_of(token_count));
  if (!predicted) return std::nullopt;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*predicted));
}

std::optional<double> CostModel::predict_seconds(double tokens, std::size_t size) const {
  if (sizes_[size].is_known) return tokens * sizes_[size].seconds_per_token;
  const Size* below = nullptr;
  const Size* above = nullptr;
  for (std::size_t i = 0; i < size; ++i) below = sizes_[i].is_known ? &sizes_[i] : below;
  for (std::size_t i = sizes_.size(); i-- > size;) above = sizes_[i].is_known ? &sizes_[i] : above;
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below == nullptr) return tokens * above->seconds_per_token;
  if (above == nullptr) return tokens * below->seconds_per_token;
  const double from = below->tokens * below->seconds_per_token;
  const double to = above->tokens * above->seconds_per_token;
  return from + (to - from) * (tokens - below->tokens) / (above->tokens - below->tokens);
}

// The best of all sizes: it is the speed that the lane reaches when enough work waits.
std::optional<double> CostModel::tokens_per_second() const {
  std::optional<double> best;
  for (const auto& size : sizes_) {
    if (!size.is_known || size.seconds_per_token <= 0) continue;
    best = std::max(best.value_or(0), 1 / size.seconds_per_token);
  }
  return best;
}

}  // namespace muster
