// The likeliest tokens first, whosever they are: of each draft these are its first ones, so any
// number of them is a step. Each number is looked at, since cost need not grow evenly.

#include "scheduler/draft_lengths.h"

#include <algorithm>

namespace muster {
namespace {

constexpr double kGainLeast = 1.02;

/// One token of a draft, and the chance that it is right with all before it.
struct Candidate {
  std::size_t offer = 0;
  double chance = 0;
};

std::vector<Candidate> candidates_of(std::span<const DraftOffer> offers, std::size_t most) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < offers.size(); ++i) {
    double chance = 1;
    for (std::size_t k = 0; k < std::min(offers[i].size, most); ++k) {
      chance *= offers[i].hit_rate;
      all.push_back({.offer = i, .chance = chance});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.chance > b.chance; });
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace

std::vector<std::size_t> draft_lengths(std::span<const DraftOffer> offers,
                                       std::size_t sequence_count, std::size_t tokens_most,
                                       const StepCost& cost) {
  const auto candidates = candidates_of(offers, tokens_most);
  const auto rate = [&](double tokens, std::size_t computed) {
    return tokens / cost.seconds_of(static_cast<std::uint32_t>(computed));
  };
  auto tokens = static_cast<double>(sequence_count);
  double best = kGainLeast * rate(tokens, sequence_count);
  std::size_t count = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    tokens += candidates[i].chance;
    const double reached = rate(tokens, sequence_count + i + 1);
    if (reached <= best) continue;
    best = reached;
    count = i + 1;
  }
  std::vector<std::size_t> lengths(offers.size());
  for (std::size_t i = 0; i < count; ++i) ++lengths[candidates[i].offer];
  return lengths;
}

}  // namespace muster
