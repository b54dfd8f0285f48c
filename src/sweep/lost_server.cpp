#include "sweep/lost_server.h"

#include <algorithm>

namespace muster {

std::optional<std::string> lost_server(const BenchResult& result) {
  constexpr std::size_t kInARow = 3;
  for (const auto& point : result.points) {
    for (const auto& trial : point.trials) {
      const auto& samples = trial.samples.samples;
      const auto count = std::min(kInARow, samples.size());
      const bool is_lost =
          count > 0 &&
          std::all_of(samples.end() - static_cast<std::ptrdiff_t>(count), samples.end(),
                      [](const Sample& one) { return one.outcome == SampleEnd::Broken; });
      if (!is_lost) continue;
      const auto& problems = trial.samples.problems;
      return problems.empty() ? "the connection broke" : problems.back();
    }
  }
  return std::nullopt;
}

}  // namespace muster
