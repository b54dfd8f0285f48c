#pragma once

#include <span>

namespace muster::engine {

/// How far the next token's probabilities by `logits` are from those by `reference`: with p and q
/// the softmax of the two,
///
///   KL(p || q) = sum p (log p - log q)
///
/// 0 where both are the same. In double: what is looked for is near the last bits of a float.
/// Shapes: both [vocab], at least 1. Units: nats; a reference or logits that are not finite give
/// what is no number. Threads: pure. Cost: two passes over each.
/// Source: Kullback and Leibler 1951, "On Information and Sufficiency", formula 2.4; llama.cpp,
/// tools/perplexity, measures quantised models by it.
double divergence(std::span<const float> reference, std::span<const float> logits);

}  // namespace muster::engine
