// Worlds for the simulator: a few classic ones whose answers are known (heavy tails, saturation, a
// burst), and random ones drawn entirely from a seed, so that a failing world can be run again from
// its number. The order of draws is part of a world: a draw that is added or moved changes every
// world after it.

#include "simulator/scenarios.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "base/check.h"
#include "simulator/random.h"

namespace muster {
namespace {

constexpr double kTokensPerSecond = 1000;  // of a device of speed 1

TimePoint after(double time_seconds) {
  return TimePoint{} +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time_seconds));
}

std::shared_ptr<const PlacementExpression> expression(std::string_view text) {
  auto parsed = PlacementExpression::parse(text);
  MUSTER_CHECK(parsed);
  return *parsed;
}

/// Queries have the first quarter of the devices, all else has the rest.
DispatchOptions options_of(Strategy strategy, std::size_t device_count) {
  DispatchOptions options{.strategy = strategy};
  options.expression = expression("outstanding_seconds / weight");
  const std::size_t query_devices = std::max<std::size_t>(1, device_count / 4);
  for (std::size_t i = 0; i < device_count; ++i) {
    const auto type = i < query_devices ? RequestType::Query : RequestType::Document;
    options.pools[static_cast<std::size_t>(type)].push_back(i);
  }
  return options;
}

// Memory is that of a device which is nearly empty, so that no strategy avoids it unless a world
// says so.
SimulatedDevice device_of(double speed, std::uint64_t slot_count, std::uint64_t token_budget) {
  return {.state = {.is_eligible = true,
                    .slot_count = slot_count,
                    .token_budget = token_budget,
                    .models = {1},
                    .memory_total_bytes = 80'000'000'000,
                    .memory_free_bytes = 70'000'000'000},
          .tokens_per_second = speed * kTokensPerSecond};
}

}  // namespace

std::vector<Strategy> all_strategies() {
  return {Strategy::Auto,        Strategy::LeastWork, Strategy::ComputeLoad,
          Strategy::MemoryUsage, Strategy::TaskType,  Strategy::StaticPartition,
          Strategy::RoundRobin,  Strategy::Expression};
}

// Arrivals are Poisson at `load` of the fleet's capacity, costs log-normal. What a text says of its
// size is an estimate with an error of its own, and `cost_factor` makes up the difference, so a
// strategy sees the estimate and pays the cost.
SimulationInput heavy_tailed(const HeavyTailed& options) {
  SimulatedChance chance(options.seed);
  SimulationInput input{.dispatch = options_of(options.strategy, options.speeds.size())};
  for (const auto speed : options.speeds) {
    input.devices.push_back(device_of(speed, options.slot_count, 1));
  }
  const double capacity = std::accumulate(options.speeds.begin(), options.speeds.end(), 0.0);
  double time = 0;
  for (std::size_t i = 0; i < options.text_count; ++i) {
    time += chance.exponential(1 / (options.load * capacity));
    const double cost = chance.log_normal(kTokensPerSecond, options.sigma);
    const double estimate = cost * chance.log_normal(1, options.estimate_sigma);
    const double tokens = std::max(1.0, std::round(estimate));
    input.texts.push_back(
        {.at = after(time),
         .item = {.key = i,
                  .model = 1,
                  .token_count = static_cast<std::uint32_t>(std::min(tokens, 4e9)),
                  .lane = Lane::Bulk,
                  .type = chance.happens(0.25) ? RequestType::Query : RequestType::Document,
                  .affinity = chance.next()},
         .cost_factor = cost / tokens});
  }
  return input;
}

// All texts wait from the start, so throughput depends on nothing but how evenly work is dealt.
// Batches are not bounded in time, or slow devices would get smaller ones.
SimulationInput saturated(Strategy strategy, const std::vector<double>& speeds,
                          std::uint64_t seed) {
  SimulatedChance chance(seed);
  SimulationInput input{.dispatch = options_of(strategy, speeds.size())};
  input.dispatch.batch_time_most = Duration::max();
  for (const auto speed : speeds) input.devices.push_back(device_of(speed, 2, 4096));
  for (std::size_t i = 0; i < 20'000; ++i) {
    input.texts.push_back(
        {.at = TimePoint{},
         .item = {.key = i,
                  .model = 1,
                  .token_count = static_cast<std::uint32_t>(16 + chance.below(497)),
                  .lane = Lane::Bulk,
                  .affinity = chance.next()}});
  }
  return input;
}

// Many equal texts at once on fast equal devices without pools: a strategy that spreads
// them evenly ends soonest.
SimulationInput burst(Strategy strategy, std::size_t text_count, std::size_t device_count) {
  SimulationInput input{.dispatch = options_of(strategy, device_count)};
  input.dispatch.pools = {};
  for (std::size_t i = 0; i < device_count; ++i) {
    input.devices.push_back(device_of(100, 2, 4096));
    input.devices.back().batch_overhead = std::chrono::milliseconds(1);
  }
  SimulatedChance chance(1);
  for (std::size_t i = 0; i < text_count; ++i) {
    input.texts.push_back({.at = TimePoint{},
                           .item = {.key = i,
                                    .model = 1,
                                    .token_count = 128,
                                    .lane = Lane::Bulk,
                                    .affinity = chance.next()}});
  }
  return input;
}

namespace {

// The expressions are chosen to be odd too: one divides the fleet by speed, one reads the power of
// devices.
DispatchOptions random_options(SimulatedChance& chance, std::size_t device_count) {
  const auto strategies = all_strategies();
  auto options = options_of(strategies[chance.below(strategies.size())], device_count);
  constexpr std::string_view kExpressions[] = {
      "outstanding_seconds / weight", "in_flight_batches - free_slots",
      "tokens_per_second > 500 ? queued_tokens : 1e6 + index", "power"};
  options.expression = expression(kExpressions[chance.below(std::size(kExpressions))]);
  options.memory_threshold = chance.happens(0.3) ? 0.1 : 0.8;
  options.load_bound = 1 + chance.uniform();
  options.batch_time_most = std::chrono::milliseconds(10 + chance.below(500));
  return options;
}

// The first device has both models, so that every text can be served somewhere.
SimulatedDevice random_device(SimulatedChance& chance, bool has_both_models) {
  auto device =
      device_of(0.2 + 4 * chance.uniform(), 2 * (1 + chance.below(3)), 64 + chance.below(1000));
  device.state.weight = 0.1 + 3 * chance.uniform();
  device.batch_overhead = std::chrono::microseconds(chance.below(20'000));
  device.start_time = std::chrono::milliseconds(chance.below(3000));
  if (chance.happens(0.3)) device.state.memory_free_bytes = 5'000'000'000;
  if (chance.happens(0.2)) device.state.memory_free_bytes.reset();
  if (has_both_models || chance.happens(0.3)) {
    device.state.models = {1, 2};
  } else {
    device.state.models = {static_cast<ModelId>(1 + chance.below(2))};
  }
  return device;
}

// A few texts kill the worker that computes them and some callers leave before the answer: both
// must end exactly once all the same.
SimulatedText random_text(SimulatedChance& chance, std::size_t key, double time) {
  SimulatedText text{.at = after(time),
                     .item = {.key = key,
                              .model = static_cast<ModelId>(1 + chance.below(2)),
                              .token_count = static_cast<std::uint32_t>(1 + chance.below(300)),
                              .lane = chance.happens(0.3) ? Lane::Interactive : Lane::Bulk,
                              .type = static_cast<RequestType>(chance.below(kRequestTypeCount)),
                              .affinity = chance.below(10)},
                     .cost_factor = chance.log_normal(1, 0.3),
                     .kills = chance.happens(0.01)};
  if (chance.happens(0.1)) text.leaves = after(time + chance.exponential(0.5));
  return text;
}

}  // namespace

// Small fleets and short runs on purpose: rare combinations of faults are met by many seeds, and a
// world that fails is small enough to follow.
SimulationInput random_faults(std::uint64_t seed) {
  SimulatedChance chance(seed);
  const std::size_t device_count = 1 + chance.below(5);
  SimulationInput input{.dispatch = random_options(chance, device_count)};
  for (std::size_t i = 0; i < device_count; ++i) {
    input.devices.push_back(random_device(chance, i == 0));
  }
  if (chance.happens(0.5)) {
    input.admission =
        AdmissionOptions{.queue_budget = std::chrono::milliseconds(200 + chance.below(5000)),
                         .queued_tokens_most = 2000 + chance.below(20'000),
                         .queued_texts_most = 10 + chance.below(100)};
  }
  double time = 0;
  const std::size_t text_count = 20 + chance.below(150);
  const bool is_burst = chance.happens(0.3);
  for (std::size_t i = 0; i < text_count; ++i) {
    time += is_burst ? 0 : chance.exponential(0.05);
    input.texts.push_back(random_text(chance, i, time));
  }
  const auto fault_count = chance.below(12);
  for (std::uint64_t i = 0; i < fault_count; ++i) {
    input.faults.push_back({.at = after(10 * chance.uniform()),
                            .device = static_cast<std::size_t>(chance.below(device_count)),
                            .kind = static_cast<SimulatedFaultKind>(chance.below(6)),
                            .factor = 1 + 20 * chance.uniform(),
                            .length = std::chrono::milliseconds(chance.below(5000))});
  }
  return input;
}

}  // namespace muster
