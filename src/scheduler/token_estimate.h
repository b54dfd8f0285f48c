#pragma once

#include <cstdint>

namespace muster {

/// How many tokens a text will have, by its bytes: learnt from the texts that were tokenised last.
///
/// Pure. Threads: owned by one loop.
class TokenEstimate {
 public:
  /// So many bytes of text became so many tokens, special ones not counted; nothing was cut off.
  void learn(std::uint64_t byte_count, std::uint64_t token_count);

  /// False before anything was learnt.
  bool is_known() const { return bytes_ > 0; }

  /// Tokens of a text of so many bytes, special ones not counted: one a byte before anything was
  /// learnt, and never less than one in 16 bytes.
  std::uint64_t tokens(std::uint64_t byte_count) const;

 private:
  double bytes_ = 0;  // older ones count for less
  double tokens_ = 0;
};

}  // namespace muster
