// A reply is printed while it is generated, so text that may turn out to be part of a stop
// string must be held back, and nothing more than that.

#include "tokenizer/stop_strings.h"

#include <algorithm>
#include <utility>

// One Knuth-Morris-Pratt automaton a stop string. What is held back is the longest beginning of any
// of them that the text ends with: it may still become a match, and nothing longer can.

namespace muster {
namespace {

std::vector<std::size_t> borders_of(std::string_view text) {
  std::vector<std::size_t> borders(text.size() + 1, 0);
  std::size_t matched = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    while (matched > 0 && text[matched] != text[i]) matched = borders[matched];
    if (text[matched] == text[i]) ++matched;
    borders[i + 1] = matched;
  }
  return borders;
}

}  // namespace

Result<StopStrings> StopStrings::make(std::vector<std::string> stops) {
  std::vector<Pattern> patterns;
  for (auto& stop : stops) {
    if (stop.empty()) return Error{ErrorKind::InvalidArgument, "a stop string is empty"};
    auto borders = borders_of(stop);
    patterns.push_back({std::move(stop), std::move(borders), 0});
  }
  return StopStrings(std::move(patterns));
}

StopStrings::Step StopStrings::push(std::string_view part) {
  Step step;
  if (is_stopped_) return step;
  for (const char c : part) {
    held_.push_back(c);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      auto& pattern = patterns_[i];
      auto& matched = pattern.matched;
      while (matched > 0 && pattern.text[matched] != c) matched = pattern.borders[matched];
      if (pattern.text[matched] == c) ++matched;
      kept = std::max(kept, matched);
      const bool is_longest = !step.stop || pattern.text.size() > patterns_[*step.stop].text.size();
      if (matched == pattern.text.size() && is_longest) step.stop = i;
    }
    const auto cut = step.stop ? patterns_[*step.stop].text.size() : kept;
    step.text.append(held_, 0, held_.size() - cut);
    held_.erase(0, held_.size() - cut);
    if (!step.stop) continue;
    held_.clear();
    is_stopped_ = true;
    return step;
  }
  return step;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace muster
