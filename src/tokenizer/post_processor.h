#pragma once

#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster {

/// The special tokens around a single text: what every post-processor comes down to.
struct PostProcessor {
  std::vector<TokenId> before;
  std::vector<TokenId> after;

  /// Puts the tokens of `outer` around these.
  void wrap(const PostProcessor& outer);
};

}  // namespace muster
