#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// Finds the first of some texts in a text that comes in parts, and lets through what is before it.
///
/// The end of what has come is held back as long as it may be the beginning of a stop string; so
/// nothing that `push` returns is ever taken back. The match that ends first counts; of several
/// that end at the same byte the longest, so that the most is cut off.
///
/// Threads: not thread-safe; owned by one reply.
/// Cost: time in proportion to the text times the number of stop strings; memory in proportion to
/// the longest. Source: Knuth, Morris, Pratt 1977.
class StopStrings {
 public:
  /// Errors: InvalidArgument for an empty stop string.
  static Result<StopStrings> make(std::vector<std::string> stops);

  struct Step {
    std::string text;                 // certain to be before any stop string
    std::optional<std::size_t> stop;  // index of the stop string that was found; nothing follows
  };

  /// Takes the next part. After a match every further push is empty.
  Step push(std::string_view part);

  /// What was held back, when the text ends without a match.
  std::string finish();

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> borders;  // of each prefix: its longest proper prefix that ends it
    std::size_t matched = 0;           // bytes of `text` that the end of what has come agrees with
  };
  explicit StopStrings(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}

  std::vector<Pattern> patterns_;
  std::string held_;
  bool is_stopped_ = false;
};

}  // namespace muster
