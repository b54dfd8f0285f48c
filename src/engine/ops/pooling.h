#pragma once

#include <span>

#include "spec/encoder_spec.h"

namespace muster::engine {

/// Makes one vector of a text's token rows: the first, the last, their mean or their maximum.
///
/// Shapes: hidden [tokens, dim], one token or more; row [dim].
/// Source: sentence-transformers 6.0.1, sentence_transformer/modules/pooling.py.
void pool_tokens(Pooling pooling, std::span<const float> hidden, std::span<float> row);

/// Scales the row to length 1; a row shorter than 1e-12 is divided by that instead.
/// Source: torch 2.11, torch.nn.functional.normalize.
void normalize_row(std::span<float> row);

}  // namespace muster::engine
