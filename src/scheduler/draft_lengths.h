#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/step_cost.h"

namespace muster {

/// A draft that a sequence has.
struct DraftOffer {
  std::size_t size = 0;
  double hit_rate = 0;  // the chance of each token to be right, if all before it are
};

/// How many tokens of each draft a step is to compute, so that it brings the most tokens a second
/// by what is known of its cost: with the next token of each of `sequence_count` sequences, and
/// `tokens_most` drafted ones at most. None where they would gain less than 2 %.
///
/// Pure. Source: Leviathan et al., Fast Inference from Transformers via Speculative Decoding
/// (arXiv 2211.17192), section 3: the expected tokens of a draft of chance p are the sum of p^i.
std::vector<std::size_t> draft_lengths(std::span<const DraftOffer> offers,
                                       std::size_t sequence_count, std::size_t tokens_most,
                                       const StepCost& cost);

}  // namespace muster
