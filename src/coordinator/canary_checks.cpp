// One answer counts for every round that waits for it: a canary is not sent twice at a time.

#include "coordinator/canary_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

void CanaryChecks::begin(TimePoint now, Duration limit, std::vector<CanaryResult> results,
                         std::set<std::pair<std::size_t, ModelId>> asked, OnDone on_done) {
  rounds_.push_back({.begun_at = now,
                     .until = now + limit,
                     .results = std::move(results),
                     .open = std::move(asked),
                     .on_done = std::move(on_done)});
}

bool CanaryChecks::answer(std::size_t group, ModelId model, bool is_well, const std::string& reason,
                          std::optional<double> seconds) {
  for (auto& round : rounds_) {
    if (round.open.erase({group, model}) == 0) continue;
    auto& result = round.results[group];
    if (seconds) result.seconds = std::max(result.seconds.value_or(0), *seconds);
    if (is_well || !result.is_well) continue;
    result.is_well = false;
    result.reason = reason;
  }
  return !rounds_.empty();
}

void CanaryChecks::finish(TimePoint now) {
  for (std::size_t i = 0; i < rounds_.size();) {
    auto& round = rounds_[i];
    if (!round.open.empty() && now < round.until) {
      ++i;
      continue;
    }
    for (const auto& [group, model] : round.open) {
      auto& result = round.results[group];
      if (!result.is_well) continue;
      result.is_well = false;
      result.reason = fmt::format("no answer in {:.1f} s", seconds(round.until - round.begun_at));
    }
    // Out of the list first: who hears of it may begin another round.
    const auto done = std::move(round);
    rounds_.erase(rounds_.begin() + static_cast<std::ptrdiff_t>(i));
    done.on_done(done.results);
  }
}

std::optional<TimePoint> CanaryChecks::deadline() const {
  if (rounds_.empty()) return std::nullopt;
  return std::min_element(
             rounds_.begin(), rounds_.end(),
             [](const Round& left, const Round& right) { return left.until < right.until; })
      ->until;
}

}  // namespace muster
