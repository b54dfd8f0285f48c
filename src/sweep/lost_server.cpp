// A server that is killed in the last requests of a point breaks one or two of them, and so does
// one that lives: only asking it tells them apart.
#include "sweep/lost_server.h"

#include <algorithm>
#include <vector>

namespace muster {
namespace {

bool is_broken(const Sample& sample) { return sample.outcome == SampleEnd::Broken; }

bool ends_broken(const std::vector<Sample>& samples) {
  constexpr std::size_t kInARow = 3;
  const auto count = std::min(kInARow, samples.size());
  return count > 0 &&
         std::all_of(samples.end() - static_cast<std::ptrdiff_t>(count), samples.end(), is_broken);
}

}  // namespace

std::optional<std::string> lost_server(const BenchResult& result,
                                       const std::function<bool()>& answers) {
  const BenchTrial* doubtful = nullptr;  // the last that has a broken connection
  const BenchTrial* lost = nullptr;
  for (const auto& point : result.points) {
    for (const auto& trial : point.trials) {
      const auto& samples = trial.samples.samples;
      if (lost == nullptr && ends_broken(samples)) lost = &trial;
      if (std::any_of(samples.begin(), samples.end(), is_broken)) doubtful = &trial;
    }
  }
  if (lost == nullptr && doubtful != nullptr && !answers()) lost = doubtful;
  if (lost == nullptr) return std::nullopt;
  const auto& said = lost->samples.last_broken;
  return said.empty() ? "the connection broke" : said;
}

}  // namespace muster
