// A mean for each number of tokens, which is forgotten where it was not seen for long: contexts
// grow, and a machine has more or less to do.

#include "scheduler/step_cost.h"

#include <algorithm>

namespace muster {
namespace {

constexpr double kNewest = 0.25;  // what the latest step counts
constexpr std::uint64_t kRemembered = 256;
constexpr double kUnseenShare = 0.25;  // of a token's share of a step, for one more

}  // namespace

void StepCost::learn(std::uint32_t token_count, Duration time) {
  ++step_count_;
  if (token_count >= sizes_.size()) return;
  const bool was_known = is_known(token_count);
  auto& size = sizes_[token_count];
  size.seconds =
      was_known ? size.seconds + kNewest * (seconds(time) - size.seconds) : seconds(time);
  size.seen_at = step_count_;
}

bool StepCost::is_known(std::size_t token_count) const {
  const auto& size = sizes_[token_count];
  return size.seen_at > 0 && step_count_ - size.seen_at < kRemembered;
}

double StepCost::seconds_of(std::uint32_t token_count) const {
  const std::size_t wanted = std::max<std::size_t>(token_count, 1);
  std::size_t below = std::min(wanted, sizes_.size() - 1);
  while (below > 0 && !is_known(below)) --below;
  std::size_t above = std::min(wanted, sizes_.size());
  while (above < sizes_.size() && !is_known(above)) ++above;
  if (below == wanted) return sizes_[wanted].seconds;
  const auto x = static_cast<double>(wanted);
  if (below == 0 && above == sizes_.size()) return 1 + kUnseenShare * (x - 1);
  const auto from = static_cast<double>(below == 0 ? above : below);
  const double at_from = sizes_[below == 0 ? above : below].seconds;
  if (below == 0 || above == sizes_.size()) return at_from * (1 + kUnseenShare * (x - from) / from);
  const double share = (x - from) / (static_cast<double>(above) - from);
  return at_from + share * (sizes_[above].seconds - at_from);
}

}  // namespace muster
