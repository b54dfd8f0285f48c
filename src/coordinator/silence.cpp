// How long a batch may be silent before its worker counts as hung: five times what is predicted,
// never less than a floor. The floor grows as the prediction gets worse: the device's own past, a
// canary, another device, nothing at all. Beside a load the floor is higher, since reading weights
// slows everything on the machine.

#include "coordinator/silence.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace muster {
namespace {

constexpr int kSlack = 5;
constexpr Duration kLeastByOwn = std::chrono::seconds(1);
constexpr Duration kLeastByCanary = std::chrono::seconds(2);
constexpr Duration kLeastByPeer = std::chrono::seconds(5);
constexpr Duration kLeastBesideLoad = std::chrono::seconds(10);
constexpr Duration kNothingKnown = std::chrono::seconds(60);
// Attention takes time with the square of a text's length, and predictions are of shorter texts:
// a text of so many tokens may take twice as long a token as they say, one of n times as many
// n + 1 times. Measured: all-MiniLM-L6-v2 with 4,096 positions, bf16 on one core with AMX.
constexpr std::uint64_t kTextTokens = 512;
constexpr int kGreetingSlack = 20;
constexpr Duration kGreetingLeast = std::chrono::seconds(10);
constexpr Duration kGreetingMost = std::chrono::seconds(120);

Duration by(Duration predicted, std::uint64_t longest_text, Duration least) {
  const auto times = kSlack * (1 + static_cast<double>(longest_text) / kTextTokens);
  // Compared before it is multiplied: a prediction may be hours.
  if (seconds(predicted) * times > seconds(Duration::max()) / 2) return Duration::max();
  return std::max(least, std::chrono::duration_cast<Duration>(predicted * times));
}

}  // namespace

Duration silence_allowed(const BatchCost& cost) {
  auto allowed = kNothingKnown;
  if (cost.own) {
    allowed = by(*cost.own, cost.longest_text, kLeastByOwn);
  } else {
    if (cost.canary)
      allowed = std::min(allowed, by(*cost.canary, cost.longest_text, kLeastByCanary));
    if (cost.peer) allowed = std::min(allowed, by(*cost.peer, cost.longest_text, kLeastByPeer));
  }
  return cost.is_beside_load ? std::max(allowed, kLeastBesideLoad) : allowed;
}

Duration greeting_allowed(std::optional<Duration> longest, std::uint32_t failed_start_count) {
  if (!longest) return kGreetingMost;
  auto allowed = std::max(kGreetingLeast, std::min(*longest, kGreetingMost) * kGreetingSlack);
  for (std::uint32_t i = 0; i < failed_start_count && allowed < kGreetingMost; ++i) allowed *= 4;
  return std::min(allowed, kGreetingMost);
}

std::optional<Silence> earlier(const std::optional<Silence>& one, const Silence& other) {
  return one && one->until() <= other.until() ? one : other;
}

}  // namespace muster
