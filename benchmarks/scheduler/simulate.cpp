// The scheduler in simulation, by seeds; docs/strategies.md shows its table.
//
//   simulate strategies [TEXTS] [SEED] [SLOTS]   heavy-tailed texts, every strategy
//   simulate speeds [SEED]                       1, 1, 1, 1/4, saturated, every strategy
//   simulate burst [TEXTS]                       onto two idle devices, every strategy
//   simulate faults [SEEDS] [FIRST]              random faults: what must always hold
//   simulate steps [SEEDS] [FIRST] [REPLIES]     decoders, so many worlds of each trace, on all
//                                                cores: times, use of steps, what must always hold
//
// Prints one JSON object; ends with 1 when something that must always hold did not.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "simulator/scenarios.h"
#include "simulator/simulation.h"
#include "simulator/step_simulation.h"
#include "simulator/step_traces.h"

namespace {

using Json = nlohmann::ordered_json;
using muster::SimulationResult;

int print(const Json& json, bool is_well) {
  fmt::print("{}\n", json.dump(1));
  return is_well ? 0 : 1;
}

Json strategy_row(muster::Strategy strategy, const SimulationResult& result) {
  Json busy = Json::array();
  for (const auto value : result.busy_seconds) busy.push_back(value / result.end_seconds);
  const auto [least, most] =
      std::minmax_element(result.busy_seconds.begin(), result.busy_seconds.end());
  return {{"strategy", muster::strategy_name(strategy)},
          {"p50_s", muster::percentile(result.response_seconds, 0.5)},
          {"p99_s", muster::percentile(result.response_seconds, 0.99)},
          {"utilisation_spread", (*most - *least) / result.end_seconds},
          {"utilisation", busy},
          {"violations", result.violations}};
}

int strategies(std::size_t text_count, std::uint64_t seed, std::uint64_t slot_count) {
  const std::vector<std::pair<std::string, std::vector<double>>> machines = {
      {"equal", std::vector<double>(8, 1.0)}, {"mixed", {2, 1, 1, 0.5, 2, 1, 1, 0.5}}};
  Json json{{"texts", text_count}, {"seed", seed}, {"load", 0.8}, {"slots", slot_count}};
  bool is_well = true;
  for (const auto& [name, speeds] : machines) {
    for (const auto strategy : muster::all_strategies()) {
      const auto result = muster::simulate(muster::heavy_tailed({.strategy = strategy,
                                                                 .speeds = speeds,
                                                                 .text_count = text_count,
                                                                 .slot_count = slot_count,
                                                                 .seed = seed}));
      is_well &= result.violations.empty();
      json[name].push_back(strategy_row(strategy, result));
    }
  }
  return print(json, is_well);
}

int speeds(std::uint64_t seed) {
  Json json;
  bool is_well = true;
  for (const auto strategy : muster::all_strategies()) {
    const auto input = muster::saturated(strategy, {1, 1, 1, 0.25}, seed);
    const auto result = muster::simulate(input);
    double tokens = 0;
    for (const auto& text : input.texts) tokens += text.item.token_count;
    is_well &= result.violations.empty();
    // Of what a device of speed 1 does; 3.25 is all there is.
    json[std::string(strategy_name(strategy))] =
        tokens / input.devices.front().tokens_per_second / result.end_seconds;
  }
  return print(json, is_well);
}

int burst(std::size_t text_count) {
  Json json;
  bool is_well = true;
  for (const auto strategy : muster::all_strategies()) {
    const auto result = muster::simulate(muster::burst(strategy, text_count, 2));
    is_well &= result.violations.empty();
    json[std::string(strategy_name(strategy))] = result.texts_served;
  }
  return print(json, is_well);
}

int faults(std::uint64_t seed_count, std::uint64_t first) {
  Json json{{"seeds", seed_count}, {"first", first}};
  Json broken = Json::array();
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;
  std::uint64_t refused = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t deaths = 0;
  for (auto seed = first; seed < first + seed_count; ++seed) {
    const auto result = muster::simulate(muster::random_faults(seed));
    answered += result.response_seconds.size();
    failed += result.failed_count;
    refused += result.refused_count;
    cancelled += result.cancelled_count;
    deaths += result.death_count;
    if (!result.violations.empty()) {
      broken.push_back({{"seed", seed}, {"violations", result.violations}});
    }
  }
  json.update({{"answered", answered},
               {"failed", failed},
               {"refused", refused},
               {"cancelled", cancelled},
               {"deaths", deaths},
               {"broken", broken}});
  return print(json, broken.empty());
}

std::vector<muster::StepWorldResult> run_worlds(const muster::StepTraceOptions& first,
                                                std::uint64_t count) {
  std::vector<muster::StepWorldResult> results(count);
  std::atomic<std::uint64_t> next{0};
  const auto work = [&] {
    for (auto i = next++; i < count; i = next++) {
      auto options = first;
      options.seed += i;
      results[i] = muster::simulate_steps(muster::step_world(options));
    }
  };
  std::vector<std::jthread> threads(std::max(1U, std::thread::hardware_concurrency()));
  for (auto& thread : threads) thread = std::jthread(work);
  threads.clear();  // waits for them
  return results;
}

Json shares_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"count", values.size()},
          {"p50_s", muster::percentile(values, 0.5)},
          {"p95_s", muster::percentile(values, 0.95)},
          {"p99_s", muster::percentile(values, 0.99)},
          {"most_s", values.empty() ? 0 : values.back()}};
}

// What all worlds of a trace have come to, together.
Json trace_row(const std::vector<muster::StepWorldResult>& results, std::uint64_t first) {
  muster::StepWorldResult all;
  Json broken = Json::array();
  const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& one = results[i];
    add(all.first_token_seconds, one.first_token_seconds);
    add(all.token_seconds, one.token_seconds);
    add(all.end_seconds, one.end_seconds);
    all.step_count += one.step_count;
    all.step_token_count += one.step_token_count;
    all.step_token_room += one.step_token_room;
    all.prompt_token_count += one.prompt_token_count;
    all.cached_token_count += one.cached_token_count;
    all.preemption_count += one.preemption_count;
    all.refused_count += one.refused_count;
    all.cancelled_count += one.cancelled_count;
    all.wait_share_most = std::max(all.wait_share_most, one.wait_share_most);
    if (one.violations.empty()) continue;
    broken.push_back({{"seed", first + i}, {"violations", one.violations}});
  }
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  return {{"answered", all.end_seconds.size()},
          {"refused", all.refused_count},
          {"cancelled", all.cancelled_count},
          {"first_token", shares_of(all.first_token_seconds)},
          {"token", shares_of(all.token_seconds)},
          {"end", shares_of(all.end_seconds)},
          {"steps", all.step_count},
          {"step_fill", share(all.step_token_count, all.step_token_room)},
          {"prefix_hits", share(all.cached_token_count, all.prompt_token_count)},
          {"preemptions", all.preemption_count},
          {"wait_share_most", all.wait_share_most},
          {"broken", broken}};
}

int steps(std::uint64_t seed_count, std::uint64_t first, std::size_t reply_count) {
  Json json{{"seeds", seed_count}, {"first", first}, {"replies", reply_count}};
  bool is_well = true;
  for (const auto trace : muster::all_step_traces()) {
    const auto results =
        run_worlds({.trace = trace, .seed = first, .reply_count = reply_count}, seed_count);
    auto row = trace_row(results, first);
    is_well &= row["broken"].empty();
    json[std::string(muster::step_trace_name(trace))] = std::move(row);
  }
  return print(json, is_well);
}

std::uint64_t number(const std::vector<std::string_view>& words, std::size_t index,
                     std::uint64_t otherwise) {
  if (index >= words.size()) return otherwise;
  std::uint64_t value = 0;
  const auto word = words[index];
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  return code == std::errc{} && end == word.data() + word.size() ? value : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const auto what = words.empty() ? std::string_view() : words[0];
  if (what == "strategies") {
    return strategies(number(words, 1, 100'000), number(words, 2, 1), number(words, 3, 2));
  }
  if (what == "speeds") return speeds(number(words, 1, 1));
  if (what == "burst") return burst(number(words, 1, 37));
  if (what == "faults") return faults(number(words, 1, 200), number(words, 2, 0));
  if (what == "steps") {
    const auto replies = muster::StepTraceOptions{}.reply_count;
    return steps(number(words, 1, 100), number(words, 2, 0), number(words, 3, replies));
  }
  fmt::print(stderr, "usage: simulate strategies|speeds|burst|faults|steps [NUMBER...]\n");
  return 2;
}
