#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "planner/chain/chain.h"

// What the planners are held against: the contract of chain.h word by word, by trying everything.
namespace muster::chain_oracle {

enum class Aim : std::uint8_t { Slowest, Total };

inline double cut_after(const ChainProblem& problem, std::size_t end) {
  if (end == problem.bytes.size()) return 0.0;
  return problem.cut_seconds_after.empty() ? problem.cut_seconds
                                           : problem.cut_seconds_after[end - 1];
}

/// The time of a stage with its cut; nullopt when it does not fit.
inline std::optional<double> stage_seconds(const ChainProblem& problem, std::size_t device_class,
                                           std::size_t begin, std::size_t end) {
  std::uint64_t bytes = 0;
  std::uint64_t peak = 0;
  double seconds = 0.0;
  for (auto u = begin; u < end; ++u) {
    bytes += problem.bytes[u];
    if (!problem.peak.empty()) peak = std::max(peak, problem.peak[u]);
    seconds += problem.seconds[device_class][u];
  }
  const auto unit_count = problem.bytes.size();
  if (end == unit_count && begin > 0) bytes += problem.tail_extra_bytes;
  if (bytes + peak > problem.capacity[device_class]) return std::nullopt;
  return seconds + cut_after(problem, end);
}

/// All cuts over the devices in this order, empty stages among them.
inline std::optional<double> best_in_order(const ChainProblem& problem,
                                           std::span<const std::uint32_t> order, Aim aim) {
  std::optional<double> best;
  const std::function<void(std::size_t, std::size_t, double)> place =
      [&](std::size_t device, std::size_t begin, double value) {
        if (begin == problem.bytes.size()) {
          if (!best || value < *best) best = value;
          return;
        }
        if (device == order.size()) return;
        place(device + 1, begin, value);
        for (auto end = begin + 1; end <= problem.bytes.size(); ++end) {
          const auto seconds = stage_seconds(problem, order[device], begin, end);
          if (!seconds) continue;
          place(device + 1, end, aim == Aim::Total ? value + *seconds : std::max(value, *seconds));
        }
      };
  place(0, 0, 0.0);
  return best;
}

/// All orders too.
inline std::optional<double> best_any_order(const ChainProblem& problem,
                                            std::span<const std::uint32_t> counts, Aim aim) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t c = 0; c < counts.size(); ++c) order.insert(order.end(), counts[c], c);
  std::optional<double> best;
  do {
    const auto value = best_in_order(problem, order, aim);
    if (value && (!best || *value < *best)) best = value;
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

/// What is wrong with a placement; empty when it is whole, fits and tells its own times.
/// `class_of(i)`: the class of stage i.
inline std::string fault_of(const ChainProblem& problem, const ChainPlacement& placement,
                            const std::function<std::uint32_t(std::size_t)>& class_of) {
  std::uint32_t begin = 0;
  double slowest = 0.0;
  double total = 0.0;
  for (std::size_t i = 0; i < placement.stages.size(); ++i) {
    const auto& stage = placement.stages[i];
    if (stage.begin != begin || stage.end <= stage.begin) return "a gap or an empty stage";
    const auto seconds = stage_seconds(problem, class_of(i), stage.begin, stage.end);
    if (!seconds) return "a stage that does not fit";
    slowest = std::max(slowest, *seconds);
    total += *seconds;
    begin = stage.end;
  }
  if (begin != problem.bytes.size()) return "units left over";
  const auto is_near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
  if (!is_near(placement.slowest_seconds, slowest)) return "another slowest stage than it says";
  if (!is_near(placement.total_seconds, total)) return "another sum than it says";
  return {};
}

struct Shape {
  std::uint32_t units_max = 9;
  std::uint32_t devices_max = 6;
  std::uint32_t classes_max = 3;
};

struct Instance {
  ChainProblem problem;
  std::vector<std::uint32_t> counts;
  std::vector<std::uint32_t> order;
};

/// A random instance of small whole numbers, so that ties are frequent: about a third of them fit
/// nowhere, a half are short of memory, and every extra of the contract occurs.
inline Instance random_instance(std::mt19937_64& random, const Shape& shape) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  Instance made;
  auto& problem = made.problem;
  const auto units = below(shape.units_max) + 1;
  const auto classes = below(shape.classes_max) + 1;
  const auto is_plain = below(3) == 0;
  std::uint64_t bytes = 0;
  for (std::uint64_t u = 0; u < units; ++u) {
    problem.bytes.push_back(below(9));
    bytes += problem.bytes.back();
    if (!is_plain) problem.peak.push_back(below(6));
  }
  const bool is_regular = below(3) == 0;  // a transformer: equal blocks
  for (std::uint64_t c = 0; c < classes; ++c) {
    auto& row = problem.seconds.emplace_back();
    const auto speed = 1.0 + static_cast<double>(below(4));
    for (std::uint64_t u = 0; u < units; ++u) {
      row.push_back(is_regular ? speed : static_cast<double>(below(20)) / speed);
    }
    problem.capacity.push_back(below(3) == 0 ? bytes + 10 : below(bytes + 6));
  }
  problem.cut_seconds = static_cast<double>(below(4)) * 0.5;
  if (below(3) == 0) problem.tail_extra_bytes = below(6);
  if (below(4) == 0) {
    for (std::uint64_t u = 0; u < units; ++u) {
      problem.cut_seconds_after.push_back(static_cast<double>(below(8)));
    }
  }
  made.counts.assign(classes, 0);
  for (auto devices = below(shape.devices_max) + 1; devices > 0; --devices) {
    made.order.push_back(static_cast<std::uint32_t>(below(classes)));
    ++made.counts[made.order.back()];
  }
  return made;
}

}  // namespace muster::chain_oracle
