// planner_bench                     how fast plans are made, and what memory that takes
// planner_bench exact N SEED        P1 to P4 against brute force on N random instances each
// planner_bench groups MATRIX GPU SIZE   groups and pipeline order of a printed link matrix
//
// Each prints one JSON line. Times are medians of nine passes of one thread.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "counted_heap.h"
#include "planner/chain/chain.h"
#include "planner/chain/chain_oracle.h"
#include "planner/memory/memory_fixture.h"
#include "planner/parallel/parallel_choice.h"
#include "planner/parallel/topology_order.h"
#include "planner/plan/plan.h"
#include "topology/links.h"
#include "topology/machine_text.h"

namespace {

using muster::ChainProblem;

constexpr int kPasses = 9;

int fail(std::string_view message) {
  std::fprintf(stderr, "planner_bench: %.*s\n", static_cast<int>(message.size()), message.data());
  return 2;
}

struct Cost {
  double ms = 0.0;
  std::size_t peak_bytes = 0;  // beyond what lived before
};

template <typename Work>
Cost cost_of(Work work) {
  std::vector<double> ms;
  Cost cost;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto before = start_heap_peak();
    const auto start = std::chrono::steady_clock::now();
    work();
    const auto end = std::chrono::steady_clock::now();
    ms.push_back(std::chrono::duration<double, std::milli>(end - start).count());
    cost.peak_bytes = std::max(cost.peak_bytes, heap_peak() - before);
  }
  std::nth_element(ms.begin(), ms.begin() + kPasses / 2, ms.end());
  cost.ms = ms[kPasses / 2];
  return cost;
}

// Blocks with a little noise, a light embedding, a heavy head, classes of 1, 1.5, 2, … in speed.
ChainProblem chain(std::size_t units, std::size_t classes, std::uint64_t capacity) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> noise(0.95, 1.05);
  ChainProblem problem;
  for (std::size_t u = 0; u < units; ++u) {
    problem.bytes.push_back(static_cast<std::uint64_t>(1e6 * noise(random)));
    problem.peak.push_back(u + 1 == units ? 500'000 : 100'000);
  }
  for (std::size_t c = 0; c < classes; ++c) {
    auto& row = problem.seconds.emplace_back();
    const double speed = 1.0 + 0.5 * static_cast<double>(c);
    for (std::size_t u = 0; u < units; ++u) {
      const double weight = u == 0 ? 0.1 : u + 1 == units ? 2.5 : 1.0;
      row.push_back(1e-3 * weight * noise(random) / speed);
    }
    problem.capacity.push_back(capacity * (c + 1));
  }
  problem.cut_seconds = 1e-5;
  problem.tail_extra_bytes = 200'000;
  return problem;
}

std::vector<std::uint32_t> in_turn(std::size_t devices, std::uint32_t classes) {
  std::vector<std::uint32_t> order(devices);
  for (std::size_t i = 0; i < devices; ++i) order[i] = static_cast<std::uint32_t>(i) % classes;
  return order;
}

// A node of eight of two classes, one after the other, with each of the questions.
Cost node_cost() {
  const auto problem = chain(102, 2, 12'000'000);
  const auto order = in_turn(8, 2);
  const std::vector<std::uint32_t> counts{4, 4};
  Cost worst;
  const auto take = [&](const Cost& cost) {
    worst = {std::max(worst.ms, cost.ms), std::max(worst.peak_bytes, cost.peak_bytes)};
  };
  take(cost_of([&] { return muster::min_slowest_in_order(problem, order); }));
  take(cost_of([&] { return muster::min_slowest_any_order(problem, counts); }));
  take(cost_of([&] { return muster::min_total_in_order(problem, order); }));
  take(cost_of([&] { return muster::min_total_any_order(problem, counts); }));
  return worst;
}

Cost order_cost(std::size_t units, std::size_t devices, double& gap) {
  // Memory for about a unit on each of the weakest: the bound is found among thousands of devices.
  const auto problem = chain(units, 4, 1'200'000);
  const auto order = in_turn(devices, 4);
  return cost_of([&] {
    const auto found = muster::min_slowest_in_order(problem, order);
    gap = found ? found->slowest_seconds / found->bound_seconds : 0.0;
  });
}

muster::ModelDescription model_of(std::int64_t layers) {
  return muster::llama({.layers = layers,
                        .hidden = 4096,
                        .heads = 32,
                        .kv_heads = 8,
                        .head_size = 128,
                        .wide = 14336,
                        .vocab = 128256});
}

// From the text of the machine to all legal T x P x D and the order of the best.
Cost sweep_cost(const std::string& machine_text, std::int64_t layers, std::size_t& choices) {
  const auto model = model_of(layers);
  muster::Workload workload;
  workload.batch = 8;
  workload.context = 8192;
  return cost_of([&] {
    const auto machine = *muster::parse_machine(machine_text);
    std::vector<std::uint32_t> devices(machine.devices.size());
    std::iota(devices.begin(), devices.end(), 0U);
    const auto sweep = muster::parallel_choices(
        {model, workload, machine, devices, machine.devices[0].free_bytes / 10 * 9});
    choices = sweep ? sweep->choices.size() : 0;
    if (choices == 0) return;
    const auto groups = muster::tensor_groups(machine, devices, sweep->choices.front().tensor);
    muster::pipeline_order(machine, groups);
  });
}

// The whole of `muster plan`: the machine from its text, and the best of all plans with its
// reasons.
Cost plan_cost(const std::string& machine_text, std::int64_t layers, std::size_t& copies) {
  const auto model = model_of(layers);
  muster::PlanRequest request;
  request.workload.batch = 8;
  request.workload.context = 8192;
  return cost_of([&] {
    const auto machine = *muster::parse_machine(machine_text);
    const auto plan = muster::make_plan(model, machine, request);
    copies = plan && plan->is_placed() ? plan->copies.size() : 0;
  });
}

// The two questions with class counts, and the sum in order: not limited, but told.
void print_others() {
  const auto counted = chain(1'000, 2, 12'000'000);
  const std::vector<std::uint32_t> counts{600, 650};
  const auto any = cost_of([&] { return muster::min_slowest_any_order(counted, counts); });
  const auto sum = cost_of([&] { return muster::min_total_any_order(counted, counts); });
  const auto mixed = chain(1'000, 4, 1'200'000);
  const auto order = in_turn(10'000, 4);
  const auto total = cost_of([&] { return muster::min_total_in_order(mixed, order); });
  std::printf("\"counts_ms\":%.4f,\"counts_total_ms\":%.4f,\"order_total_ms\":%.4f,", any.ms,
              sum.ms, total.ms);
}

int speed() {
  double gap = 0.0;
  double gap_twice = 0.0;
  std::size_t choices = 0;
  std::size_t choices_twice = 0;
  const auto node = node_cost();
  const auto order = order_cost(1'000, 10'000, gap);
  const auto order_twice = order_cost(2'000, 20'000, gap_twice);
  const auto sweep = sweep_cost("sim:1250x8xH100-80G", 1'000, choices);
  const auto sweep_twice = sweep_cost("sim:2500x8xH100-80G", 2'000, choices_twice);
  std::size_t copies = 0;
  std::size_t copies_twice = 0;
  const auto plan = plan_cost("sim:1250x8xH100-80G", 1'000, copies);
  const auto plan_twice = plan_cost("sim:2500x8xH100-80G", 2'000, copies_twice);
  std::printf(
      "{\"plan_ms\":%.4f,\"plan_peak_bytes\":%zu,\"plan_copies\":%zu,"
      "\"plan_twice_ms\":%.4f,\"plan_twice_peak_bytes\":%zu,",
      plan.ms, plan.peak_bytes, copies, plan_twice.ms, plan_twice.peak_bytes);
  print_others();
  std::printf(
      "\"node_ms\":%.4f,\"node_peak_bytes\":%zu,\"order_ms\":%.4f,\"order_peak_bytes\":%zu,"
      "\"order_gap\":%.9f,\"order_twice_ms\":%.4f,\"order_twice_peak_bytes\":%zu,"
      "\"sweep_ms\":%.4f,\"sweep_peak_bytes\":%zu,\"sweep_choices\":%zu,"
      "\"sweep_twice_ms\":%.4f,\"sweep_twice_peak_bytes\":%zu,\"sweep_twice_choices\":%zu}\n",
      node.ms, node.peak_bytes, order.ms, order.peak_bytes, gap, order_twice.ms,
      order_twice.peak_bytes, sweep.ms, sweep.peak_bytes, choices, sweep_twice.ms,
      sweep_twice.peak_bytes, choices_twice);
  return choices > 0 && copies > 0 && gap > 0.0 ? 0 : 1;
}

struct Agreement {
  int none = 0;        // nothing fits, says brute force
  int wrong = 0;       // another answer than brute force, or one that does not fit
  double worst = 0.0;  // relative difference
};

Agreement compare(int count, std::uint64_t seed, muster::chain_oracle::Aim aim, bool is_ordered) {
  namespace oracle = muster::chain_oracle;
  std::mt19937_64 random(seed);
  Agreement agreement;
  for (int i = 0; i < count; ++i) {
    const auto [problem, counts, order] = oracle::random_instance(random, {});
    const auto wanted = is_ordered ? oracle::best_in_order(problem, order, aim)
                                   : oracle::best_any_order(problem, counts, aim);
    const bool is_slowest = aim == oracle::Aim::Slowest;
    const auto found = is_ordered ? (is_slowest ? muster::min_slowest_in_order(problem, order)
                                                : muster::min_total_in_order(problem, order))
                                  : (is_slowest ? muster::min_slowest_any_order(problem, counts)
                                                : muster::min_total_any_order(problem, counts));
    if (!wanted) ++agreement.none;
    if (found.has_value() != wanted.has_value()) ++agreement.wrong;
    if (!found || !wanted) continue;
    const double value = is_slowest ? found->slowest_seconds : found->total_seconds;
    const double difference = *wanted > 0.0 ? std::abs(value - *wanted) / *wanted : value;
    const auto fault = oracle::fault_of(problem, *found, [&](std::size_t stage) {
      const auto device = found->stages[stage].device;
      return is_ordered ? order[device] : device;
    });
    agreement.worst = std::max(agreement.worst, difference);
    if (difference > 1e-9 || !fault.empty()) ++agreement.wrong;
  }
  return agreement;
}

std::string scientific(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3e", value);
  return text.data();
}

template <typename Number>
Number number_of(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int exact(std::string_view count_text, std::string_view seed_text) {
  const auto count = number_of<int>(count_text);
  auto seed = number_of<std::uint64_t>(seed_text);
  if (count < 1) return fail("exact needs a count");
  using muster::chain_oracle::Aim;
  struct Question {
    const char* name;
    Aim aim;
    bool is_ordered;
  };
  constexpr std::array kQuestions{
      Question{"P1", Aim::Slowest, true}, Question{"P2", Aim::Slowest, false},
      Question{"P3", Aim::Total, true}, Question{"P4", Aim::Total, false}};
  std::string line = "{\"instances\":" + std::to_string(count);
  int wrong = 0;
  for (const auto& [name, aim, is_ordered] : kQuestions) {
    const auto agreement = compare(count, seed++, aim, is_ordered);
    wrong += agreement.wrong;
    line += std::string(",\"") + name + "\":{\"none_fits\":" + std::to_string(agreement.none) +
            ",\"wrong\":" + std::to_string(agreement.wrong) +
            ",\"worst_difference\":" + scientific(agreement.worst) + "}";
  }
  std::printf("%s}\n", line.c_str());
  return wrong == 0 ? 0 : 1;
}

int groups(const char* path, std::string_view gpu_name, std::string_view size_text) {
  const auto text = muster::read_file(path);
  if (!text) return fail(text.error().message);
  const auto matrix = muster::parse_link_matrix(*text);
  if (!matrix) return fail(matrix.error().message);
  const auto gpu = muster::find_gpu(gpu_name);
  if (!gpu) return fail(gpu.error().message);
  const auto size = number_of<std::uint32_t>(size_text);
  if (size == 0) return fail("a group has at least one device");
  auto machine = *muster::parse_machine("sim:" + std::to_string(matrix->device_count) + "x" +
                                        std::string((*gpu)->name));
  const std::vector<const muster::GpuFacts*> gpus(matrix->device_count, *gpu);
  machine.node_links = {muster::links_of(*matrix, gpus)};
  std::vector<std::uint32_t> devices(matrix->device_count);
  std::iota(devices.begin(), devices.end(), 0U);
  const auto found = muster::tensor_groups(machine, devices, size);
  std::string line = "[";
  for (const auto i : muster::pipeline_order(machine, found)) {
    line += line.size() > 1 ? ",[" : "[";
    for (std::size_t d = 0; d < found[i].size(); ++d) {
      line += (d > 0 ? "," : "") + std::to_string(found[i][d]);
    }
    line += "]";
  }
  std::printf("{\"stages\":%s]}\n", line.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.empty()) return speed();
  if (words.size() == 3 && words[0] == "exact") return exact(words[1], words[2]);
  if (words.size() == 4 && words[0] == "groups") return groups(argv[2], words[2], words[3]);
  return fail(
      "usage: planner_bench | planner_bench exact N SEED | planner_bench groups MATRIX GPU SIZE");
}
