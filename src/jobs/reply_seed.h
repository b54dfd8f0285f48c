#pragma once

#include <cstdint>

namespace muster {

/// The seed of the reply to one prompt of a corpus, by the run's own and the prompt's number from
/// 0: replies to equal prompts differ, and each is the same whatever was computed before it.
///
/// The state of SplitMix64 moves by its increment for each prompt, and is mixed.
/// Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators".
constexpr std::uint64_t reply_seed(std::uint64_t run_seed, std::uint64_t number) {
  std::uint64_t z = run_seed + (number + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace muster
