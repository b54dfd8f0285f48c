#pragma once

#include <optional>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster {

/// The special tokens of a pair of texts: before, A, between, B, after. The segments (the library's
/// type ids) are 0 up to some place, and 1 from there on.
struct PairTemplate {
  std::vector<TokenId> before;
  std::vector<TokenId> between;
  std::vector<TokenId> after;
  bool has_segments = true;             // false: all is of segment 0
  std::size_t between_first_count = 0;  // of `between`, those of segment 0

  std::size_t special_count() const { return before.size() + between.size() + after.size(); }
};

/// The special tokens around a single text, and those of a pair: what every post-processor comes
/// down to.
struct PostProcessor {
  std::vector<TokenId> before;
  std::vector<TokenId> after;
  /// Without a post-processor two texts follow each other. Nullopt: a template that gives a pair
  /// another order.
  std::optional<PairTemplate> pair = PairTemplate{};

  /// Puts the tokens of `outer` around these.
  void wrap(const PostProcessor& outer);

  /// Whether nothing is added, neither to a text nor to a pair.
  bool is_plain() const;
};

}  // namespace muster
