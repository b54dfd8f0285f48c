// Ranks all ways of using equal devices without placing any of them: for each degree one chain
// problem is built, and all depths are answered from it together, which is much cheaper than asking
// for each. The slowest link within a group and the slowest hop between neighbours stand for all
// others, so that times depend on a unit and not on where it lands. Without known speeds bytes take
// the place of seconds; such choices compare only at equal depth.

#include "planner/parallel/parallel_choice.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "planner/chain/chain.h"
#include "planner/memory/memory_model.h"
#include "planner/parallel/topology_order.h"

namespace muster {
namespace {

// What one device can have for units, or nothing.
std::optional<std::uint64_t> capacity(const ParallelQuestion& question, bool is_gpu) {
  const auto fixed = fixed_memory(question.workload, is_gpu).total();
  if (fixed > question.usable_bytes) return std::nullopt;
  return question.usable_bytes - fixed;
}

double slowest_group(const Machine& machine, std::span<const DeviceGroup> groups) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& group : groups) {
    for (std::size_t i = 1; i < group.size(); ++i) {
      const auto bytes = bytes_per_second_between(machine, group[i - 1], group[i]);
      if (bytes) least = std::min(least, *bytes);
    }
  }
  return least;
}

struct Chain {
  ChainProblem problem;
  bool is_timed = true;
};

Result<Chain> chain_of(const ParallelQuestion& question, std::span<const DeviceGroup> groups,
                       std::uint32_t tensor, std::uint64_t bytes) {
  const auto& [model, workload, machine, devices, usable] = question;
  const auto& first = machine.devices[devices.front()];
  const auto& device_class = machine.classes[first.device_class];
  const bool is_gpu = first.kind != DeviceKind::Cpu;
  const auto memory = MUSTER_TRY(unit_memory(model, workload, tensor, is_gpu));
  const auto step = usual_step(workload);
  const auto work = unit_work(model, workload, memory, step, tensor);
  const auto bandwidth = slowest_group(machine, groups);
  Chain chain;
  auto& problem = chain.problem;
  problem.capacity = {bytes};
  problem.tail_extra_bytes = MUSTER_TRY(tied_copy_bytes(model, workload, tensor, is_gpu));
  auto& row = problem.seconds.emplace_back();
  for (std::size_t u = 0; u < memory.size(); ++u) {
    problem.bytes.push_back(memory[u].weights + memory[u].kv_cache + memory[u].states +
                            memory[u].kept);
    problem.peak.push_back(memory[u].peak);
    const auto seconds = unit_seconds(work[u], device_class, tensor, bandwidth);
    chain.is_timed = chain.is_timed && seconds.has_value();
    row.push_back(seconds.value_or(static_cast<double>(problem.bytes.back())));
  }
  if (chain.is_timed) {
    const auto order = pipeline_order(machine, groups);
    const auto hop = slowest_hop(machine, groups, order);
    if (hop) problem.cut_seconds = cut_seconds(model, workload, step, *hop);
  }
  return chain;
}

// One number of copies for each depth that divides the groups: from many copies to few.
void add_choices(const Chain& chain, std::uint32_t tensor, std::uint32_t group_count,
                 std::vector<ParallelChoice>& choices) {
  const auto unit_count = static_cast<std::uint32_t>(chain.problem.bytes.size());
  std::vector<ParallelChoice> asked;
  std::vector<std::uint32_t> depths;
  for (std::uint32_t depth = 1; depth <= std::min(group_count, unit_count);) {
    const auto data = group_count / depth;
    const auto deepest = std::min(group_count / data, unit_count);
    asked.push_back({tensor, deepest, data, 0.0, 0.0});
    depths.push_back(deepest);
    depth = deepest + 1;
  }
  const auto seconds = min_slowest_of_equal(chain.problem, depths);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!seconds[i]) continue;
    asked[i].step_seconds = *seconds[i];
    asked[i].steps_per_second = *seconds[i] > 0.0 ? asked[i].data / *seconds[i] : 0.0;
    choices.push_back(asked[i]);
  }
}

}  // namespace

Result<ParallelSweep> parallel_choices(const ParallelQuestion& question) {
  ParallelSweep sweep;
  if (question.devices.empty()) return sweep;
  const auto& machine = question.machine;
  const auto& first = machine.devices[question.devices.front()];
  for (const auto device : question.devices) {
    MUSTER_CHECK(machine.devices[device].device_class == first.device_class);
  }
  const auto bytes = capacity(question, first.kind != DeviceKind::Cpu);
  if (!bytes) return sweep;
  for (const auto tensor :
       possible_tensor_degrees(question.model.shape, machine, question.devices)) {
    const auto groups = tensor_groups(machine, question.devices, tensor);
    if (groups.empty()) continue;
    const auto chain = MUSTER_TRY(chain_of(question, groups, tensor, *bytes));
    sweep.is_timed = sweep.is_timed && chain.is_timed;
    add_choices(chain, tensor, static_cast<std::uint32_t>(groups.size()), sweep.choices);
  }
  std::sort(sweep.choices.begin(), sweep.choices.end(),
            [](const ParallelChoice& a, const ParallelChoice& b) {
              const auto rank = [](const ParallelChoice& c) {
                return std::tuple(-c.steps_per_second,
                                  std::uint64_t{c.tensor} * c.pipeline * c.data, c.tensor,
                                  c.pipeline);
              };
              return rank(a) < rank(b);
            });
  return sweep;
}

}  // namespace muster
