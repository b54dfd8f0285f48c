// Philox, round by round.

#include "engine/sampling/counter_random.h"

namespace muster::engine {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultipliers[] = {0xD2511F53U, 0xCD9E8D57U};
  constexpr std::uint32_t kWeyl[] = {0x9E3779B9U, 0xBB67AE85U};
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t first = kMultipliers[0] * counter[0];
    const std::uint64_t second = kMultipliers[1] * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32U) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32U) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key[0] += kWeyl[0];
    key[1] += kWeyl[1];
  }
  return counter;
}

double uniform_at(const DrawPlace& place) {
  const auto [seed, choice, position] = place;
  const auto words = philox(
      {static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32U), choice},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)});
  const std::uint64_t bits = std::uint64_t{words[0]} << 32U | words[1];
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

}  // namespace muster::engine
