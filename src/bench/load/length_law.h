#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/statistics/random_stream.h"

namespace muster {

/// How lengths (words of a prompt, tokens of an answer) are drawn: all alike, or log-normal, as the
/// lengths of real prompts and answers are about.
///
/// Source of the law: Limpert, Stahel and Abbt 2001, "Log-normal Distributions across the
/// Sciences", BioScience 51.
struct LengthLaw {
  double median = 0;
  double sigma = 0;  // of the logarithm; 0: all alike

  /// At least 1, at most `kLengthMost`.
  std::uint64_t draw(RandomStream& random) const;
  /// "128", "lognormal:128:0.6".
  std::string text() const;
};

inline constexpr std::uint64_t kLengthMost = 1'000'000;

/// flag: for messages. Errors: InvalidArgument, with examples of the right forms. Threads: pure.
Result<LengthLaw> parse_length_law(std::string_view flag, std::string_view text);

}  // namespace muster
