#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// Finds all pieces of a vocabulary that begin at one place of a text: a double array, one step and
/// one cache line a byte.
///
/// Threads: immutable. Cost: twelve bytes a node; the 250,002 pieces of XLM-RoBERTa take 11 MB.
/// Source: Aoe 1989, "An efficient digital search algorithm by using a double-array structure";
/// the children of a node lie at its base exclusive-or their byte, as in darts-clone.
class PieceTrie {
 public:
  using Piece = std::pair<std::string_view, TokenId>;

  /// Pieces of which no two are equal, in any order; an empty one is never found.
  ///
  /// Errors: Unsupported for a piece of more than kPieceSizeMax bytes, or for so many pieces that
  /// the trie would take more than kUnitCountMax nodes.
  static Result<PieceTrie> make(std::vector<Piece> pieces);

  /// Calls `visit(size, id)` for each piece at the front of `text`, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, Visit&& visit) const {
    std::uint32_t node = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const std::uint32_t child = units_[node].base ^ static_cast<unsigned char>(text[at]);
      if (units_[child].parent != node) {
        return;
      }
      node = child;
      if (units_[node].id != kNone) {
        visit(at + 1, units_[node].id);
      }
    }
  }

  /// The longest piece that sentencepiece trains has 16 characters; more makes long texts slow.
  static constexpr std::size_t kPieceSizeMax = 1024;
  static constexpr std::size_t kUnitCountMax = std::size_t{1} << 26;

 private:
  class Builder;

  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Unit {
    std::uint32_t base = 0;
    std::uint32_t parent = kNone;
    TokenId id = kNone;
  };

  explicit PieceTrie(std::vector<Unit> units) : units_(std::move(units)) {}

  std::vector<Unit> units_;  // whole blocks of 256, so that no byte leads out of it
};

}  // namespace muster
