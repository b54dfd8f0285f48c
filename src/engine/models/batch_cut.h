#pragma once

#include <cstddef>
#include <span>

#include "engine/encoder.h"

namespace muster::engine {

/// A batch in two: the texts in front, and what is left.
struct BatchCut {
  TextBatch front;
  TextBatch rest;
};

/// Puts as many texts in front as have `tokens_most` tokens together, and one at least: a text is
/// never divided.
inline BatchCut cut_batch(const TextBatch& batch, std::size_t tokens_most) {
  std::size_t texts = 1;
  std::size_t tokens = batch.lengths[0];
  while (texts < batch.lengths.size() && tokens + batch.lengths[texts] <= tokens_most) {
    tokens += batch.lengths[texts++];
  }
  const bool has_segments = !batch.first_segments.empty();
  const std::span<const std::uint32_t> none;
  return {{batch.ids.first(tokens), batch.lengths.first(texts),
           has_segments ? batch.first_segments.first(texts) : none},
          {batch.ids.subspan(tokens), batch.lengths.subspan(texts),
           has_segments ? batch.first_segments.subspan(texts) : none}};
}

}  // namespace muster::engine
