// Learns a device's speed before any caller pays for it, with batches of canary texts on all lanes
// at once. Each round is eight times the one before, until the engine's own time outweighs the
// overhead of a batch; a bound on the predicted time keeps a slow device from a batch that blocks
// it.

#include "coordinator/load_trial.h"

#include <algorithm>
#include <utility>

namespace muster {
namespace {

constexpr std::uint64_t kGrowth = 8;
constexpr std::uint32_t kRoundsMost = 5;  // 8^4 canary texts are more than any batch holds
constexpr Duration kLongEnough = std::chrono::milliseconds(15);
constexpr Duration kBatchMost = std::chrono::milliseconds(40);

}  // namespace

LoadTrial::LoadTrial(std::uint64_t canary_tokens, std::uint64_t lane_count,
                     std::uint64_t tokens_most)
    : canary_tokens_(std::max<std::uint64_t>(1, canary_tokens)),
      lane_count_(std::max<std::uint64_t>(1, lane_count)),
      texts_most_(std::max<std::uint64_t>(1, tokens_most / canary_tokens_)) {}

std::optional<LoadTrial::Measure> LoadTrial::on_batch(Duration engine, bool is_cut) {
  is_any_cut_ |= is_cut;
  engine_sum_ += engine;
  if (++answered_count_ < lane_count_) return std::nullopt;
  const auto counted = [](std::uint64_t count) { return static_cast<Duration::rep>(count); };
  const Measure measure{.token_count = text_count_ * canary_tokens_,
                        .engine = std::exchange(engine_sum_, Duration{0}) / counted(lane_count_),
                        .is_cut = std::exchange(is_any_cut_, false)};
  answered_count_ = 0;
  const auto of_text = std::max(Duration{1}, measure.engine / counted(text_count_));
  const auto within = static_cast<std::uint64_t>(Duration(kBatchMost) / of_text);
  const auto next = std::min({text_count_ * kGrowth, texts_most_, within});
  is_done_ = ++round_count_ == kRoundsMost || measure.engine >= kLongEnough || next <= text_count_;
  if (!is_done_) text_count_ = next;
  return measure;
}

}  // namespace muster
