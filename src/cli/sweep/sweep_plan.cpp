// All that can be refused is refused here, before the first server is started and before anything
// is written: a sweep may take hours, and its last point shall not be the first to say that the
// file is wrong.
#include "cli/sweep/sweep_plan.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "cli/bench_measurement.h"
#include "cli/sweep/point_run.h"
#include "cli/sweep/sweep_facts.h"

namespace muster {
namespace {

constexpr std::uint64_t kFileBytesMost = 1 << 20;

Result<SweepConfig> read_config(const Arguments& arguments) {
  const auto& words = arguments.positionals;
  if (words.size() < 2) {
    return invalid_error(
        "muster bench run wants a file: `muster bench init -o bench.yaml` writes one");
  }
  const auto text = MUSTER_TRY(read_file(words[1], kFileBytesMost));
  const std::vector<std::string> overrides(words.begin() + 2, words.end());
  return SweepConfig::read(text, words[1], overrides);
}

Status find_limits(const CommandContext& context, SweepPlan& plan) {
  const auto& config = plan.config;
  if (!config.is_given(SweepKey::MaxMemory) && !config.is_given(SweepKey::DeviceMap)) return Done{};
  const auto placement =
      MUSTER_TRY(PlacementCheck::create(context, config, plan.facts, plan.devices.all.requested));
  for (const auto& point : plan.points) {
    plan.limits[point.id] = MUSTER_TRY(placement.check(point));
  }
  return Done{};
}

Status check_commands(const CommandContext& context, const SweepPlan& plan) {
  for (const auto& point : plan.points) {
    auto command = MUSTER_TRY(point_command(context, plan.config, point, plan.facts.task));
    const bool is_first = &point == &plan.points.front();  // all of them name the same files
    if (is_first) MUSTER_TRY(check_point_files(context, plan.config, std::move(command)));
  }
  return Done{};
}

// The name under which `measure` would ask for every point: with it a point knows what it is of.
Status name_model(const CommandContext& context, const SweepConfig& config, SweepFacts& facts) {
  if (!config.is_remote() || config.is_given(SweepKey::Model)) return Done{};
  const auto points = MUSTER_TRY(sweep_points(config, facts));
  if (points.empty()) return Done{};  // which is told later
  auto command = MUSTER_TRY(point_command(context, config, points.front(), facts.task));
  MUSTER_TRY(check_point_files(context, config, command));
  facts.served_model = MUSTER_TRY(find_served_model(context, config, std::move(command)));
  if (facts.served_model.empty()) return Done{};
  say_bench_step(fmt::format("model: {}, the first that the server lists", facts.served_model));
  return Done{};
}

}  // namespace

Result<SweepPlan> plan_sweep(const CommandContext& context) {
  auto config = MUSTER_TRY(read_config(context.arguments));
  auto facts = MUSTER_TRY(find_sweep_facts(context.config, config));
  auto devices = MUSTER_TRY(check_sweep_devices(context, config));
  for (const auto& line : availability_lines(devices.all)) say_bench_step(line);
  if (!context.arguments.has("--allow-missing")) MUSTER_TRY(refuse_missing(config, devices.all));
  facts.devices = devices.used;
  facts.machines = devices.machines;
  MUSTER_TRY(name_model(context, config, facts));
  SweepPlan plan{
      .config = std::move(config), .facts = std::move(facts), .devices = std::move(devices)};
  plan.points = MUSTER_TRY(sweep_points(plan.config, plan.facts));
  if (plan.points.empty()) {
    return Error{ErrorKind::NotFound, fmt::format("no point has a device that can be used: {}",
                                                  fmt::join(plan.devices.all.errors, "; "))};
  }
  MUSTER_TRY(find_limits(context, plan));
  MUSTER_TRY(check_commands(context, plan));
  return plan;
}

}  // namespace muster
