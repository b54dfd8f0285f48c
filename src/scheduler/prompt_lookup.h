#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster {

/// Guesses how a sequence goes on from what it holds already: by what came behind the latest
/// earlier place with the same last three tokens. Prompt lookup, as vLLM's ngram method has it.
///
/// It keeps the share of its guesses that came true, also of those that nobody computed.
///
/// Memory: 8 to 16 bytes a token. Pure. Threads: owned by its sequence.
/// Source: Saxena, Prompt Lookup Decoding (github.com/apoorvumang/prompt-lookup-decoding, 2023).
class PromptLookup {
 public:
  /// What may come behind `ids`, which hold what they held before and more; in cycles where the
  /// earlier place is so near that what came behind it ends here. At most `most` tokens.
  ///
  /// Cost: a few operations for each id that is new.
  std::vector<std::uint32_t> draft(std::span<const std::uint32_t> ids, std::uint32_t most);

  /// The share of guessed tokens that came true, later ones counting more.
  double hit_rate() const { return hit_rate_; }

 private:
  /// The tokens from `at` on are guessed to come again from `place` on.
  struct Guess {
    std::size_t place = 0;
    std::size_t at = 0;
  };

  void learn(std::span<const std::uint32_t> ids);
  void index(std::span<const std::uint32_t> ids);
  void note(std::span<const std::uint32_t> ids, std::size_t end);
  std::optional<std::size_t> find(std::span<const std::uint32_t> ids) const;
  std::size_t bucket(std::span<const std::uint32_t> gram) const;

  std::vector<std::uint32_t> ends_;  // by the hash of three ids: where their latest place ends
  std::size_t indexed_ = 0;          // ids whose beginnings are in it
  std::optional<Guess> guess_;
  double hit_rate_ = 0.5;
};

}  // namespace muster
