// mixed_devices [--seed N] [--count N] [--margin-gib X] [--sizes GIB,GIB,...] [--range LOW,HIGH]
//
// How often a device map offloads although the model fits the GPUs. Models are the weights of six
// published decoders in bfloat16, under their module names; a machine has 2 to 8 GPUs of 1 to 3
// memory sizes, in random order. A drawn machine counts when the chain of embedding, blocks and
// head, none cut, fits its GPUs in their order: the smallest index that is full hands over to the
// next, and with weights alone a longer prefix is never worse, so this walk decides it.
//
// Prints one JSON object: for accelerate's strategies (its rules are those of planner/accelerate_*)
// and for muster's (also for whole plans, with all that takes memory beside weights), how many
// instances are offloaded in part, and what accelerate's fullest GPU holds over the least possible.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "mixed_models.h"
#include "planner/accelerate/accelerate_placer.h"
#include "planner/accelerate/accelerate_plan.h"
#include "planner/accelerate/accelerate_repair.h"
#include "planner/chain/chain.h"
#include "planner/memory/memory_model.h"
#include "planner/plan/plan.h"

namespace {

using muster::Place;
using muster::PlaceKind;
using muster::PlacementRules;
using muster::StudyModel;

constexpr std::int64_t kBitsPerByte = 8;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t count = 10000;
  double margin_gib = 1.0;  // llama.cpp's default for what is kept free on each device
  // The whole GiB of every GPU in src/spec/gpu_catalogue.cpp with at most 80.
  std::vector<double> sizes_gib = {9, 10, 15, 16, 22, 24, 32, 40, 45, 48, 60, 80};
  std::vector<double> range;  // of the GPUs' sum over the model; empty: any
};

bool fits_in_order(const std::vector<std::uint64_t>& chain,
                   const std::vector<std::uint64_t>& gpus) {
  std::size_t unit = 0;
  for (auto free : gpus) {
    for (; unit < chain.size() && chain[unit] <= free; ++unit) free -= chain[unit];
  }
  return unit == chain.size();
}

/// Bytes of the GPUs of a random machine.
std::vector<std::uint64_t> random_gpus(std::mt19937_64& random, const Options& options) {
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  const auto gpu_count = 2 + below(7);
  const auto size_count = 1 + below(3);
  std::vector<double> sizes;
  for (std::uint64_t i = 0; i < size_count; ++i) {
    sizes.push_back(options.sizes_gib[below(options.sizes_gib.size())]);
  }
  std::vector<std::uint64_t> gpus;
  for (std::uint64_t i = 0; i < gpu_count; ++i) {
    const auto gib = std::max(0.0, sizes[below(sizes.size())] - options.margin_gib);
    gpus.push_back(static_cast<std::uint64_t>(gib * kGib));
  }
  return gpus;
}

struct Counts {
  std::uint64_t drawn = 0;
  std::uint64_t instances = 0;
  std::uint64_t balanced = 0, low_zero = 0, sequential = 0;  // accelerate: offloaded in part
  std::uint64_t muster_tree = 0;      // muster's auto on modules: offloaded in part
  std::uint64_t muster_in_order = 0;  // muster's chain placement: none found
  std::uint64_t muster_any_order = 0;
  std::uint64_t plan_instances = 0;  // fit with cache, activations and context, too
  std::uint64_t plan_offloaded = 0;  // muster's plan: offloaded in part
  std::vector<double> fullest;       // accelerate's auto, where nothing is offloaded
};

muster::ModuleCase case_of(const StudyModel& model, const std::vector<std::uint64_t>& gpus) {
  muster::ModuleCase problem;
  problem.tree = model.tree;
  problem.no_split_classes = {"DecoderLayer"};
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    problem.budgets.push_back(
        {Place{PlaceKind::Gpu, i}, static_cast<std::int64_t>(gpus[i]) * kBitsPerByte});
  }
  const auto host = static_cast<std::int64_t>(512 * kGib);  // holds every model twice
  problem.budgets.push_back({Place{PlaceKind::Cpu, 0}, host * kBitsPerByte});
  return problem;
}

muster::ChainProblem chain_problem(const StudyModel& model,
                                   const std::vector<std::uint64_t>& gpus) {
  muster::ChainProblem problem;
  problem.bytes = model.chain;
  problem.capacity = gpus;
  std::vector<double> seconds(model.chain.begin(), model.chain.end());  // as many as bytes
  problem.seconds.assign(gpus.size(), seconds);
  return problem;
}

/// Ascending.
std::vector<std::uint64_t> distinct(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

muster::Machine machine_of(const std::vector<std::uint64_t>& gpus) {
  muster::Machine machine;
  machine.name = "drawn";
  const auto sizes = distinct(gpus);
  for (const auto size : sizes) {
    muster::DeviceClass kind;
    kind.model = std::to_string(size);
    kind.memory_bytes = size;
    machine.classes.push_back(std::move(kind));
  }
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    muster::MachineDevice device;
    device.index = i;
    device.device_class = static_cast<std::uint32_t>(
        std::lower_bound(sizes.begin(), sizes.end(), gpus[i]) - sizes.begin());
    device.free_bytes = gpus[i];
    machine.devices.push_back(device);
  }
  const auto count = static_cast<std::uint32_t>(gpus.size());
  machine.node_links.push_back({count, std::vector<muster::Link>(count * count)});
  machine.nodes.push_back({0, count, 0, static_cast<std::uint64_t>(512 * kGib)});
  return machine;
}

/// The same walk with all that muster's memory model counts: cache, activations, logits, context.
bool fits_with_everything(const StudyModel& model, const muster::Workload& workload,
                          const std::vector<std::uint64_t>& gpus) {
  const auto units = muster::unit_memory(model.description, workload, 1, true);
  if (!units) return false;
  const auto fixed = muster::fixed_memory(workload, true).total();
  std::size_t unit = 0;
  for (const auto free : gpus) {
    std::uint64_t kept = fixed;
    std::uint64_t peak = 0;
    for (; unit < units->size(); ++unit) {
      const auto& next = (*units)[unit];
      kept += next.weights + next.kv_cache;
      peak = std::max(peak, next.peak);
      if (kept + peak > free) break;
    }
  }
  return unit == units->size();
}

/// `muster plan --task generate --context 1024`, whole: not only weights.
void try_plan(const StudyModel& model, const std::vector<std::uint64_t>& gpus, Counts& counts) {
  muster::PlanRequest request;
  request.workload.context = 1024;
  request.margin = muster::PlanMargin{};
  if (!fits_with_everything(model, request.workload, gpus)) return;
  ++counts.plan_instances;
  const auto plan = muster::make_plan(model.description, machine_of(gpus), request);
  const bool is_offloaded = !plan || plan->verdict.fit != muster::Fit::OnDevices;
  counts.plan_offloaded += is_offloaded ? 1 : 0;
}

/// muster's placements; returns the least fullest stage in the GPUs' order.
std::optional<double> try_muster(const StudyModel& model, const std::vector<std::uint64_t>& gpus,
                                 Counts& counts) {
  const auto problem = case_of(model, gpus);
  const auto plan = muster::plan_modules(problem, PlacementRules::Repaired);
  const muster::SizedTree sized{model.tree, model.bits, problem.no_split_classes};
  if (!plan || muster::offloaded_bits(sized, plan->placement.map) > 0) ++counts.muster_tree;

  const auto chain = chain_problem(model, gpus);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < gpus.size(); ++i) order.push_back(i);
  const auto in_order = muster::min_slowest_in_order(chain, order);
  if (!in_order) ++counts.muster_in_order;

  const auto sizes = distinct(gpus);
  std::vector<std::uint32_t> class_counts;
  for (const auto size : sizes) {
    class_counts.push_back(static_cast<std::uint32_t>(std::count(gpus.begin(), gpus.end(), size)));
  }
  if (!muster::min_slowest_any_order(chain_problem(model, sizes), class_counts)) {
    ++counts.muster_any_order;
  }
  if (!in_order) return std::nullopt;
  return in_order->slowest_seconds;
}

void try_accelerate(const StudyModel& model, const std::vector<std::uint64_t>& gpus,
                    std::optional<double> least, Counts& counts) {
  auto problem = case_of(model, gpus);
  const muster::SizedTree sized{model.tree, model.bits, problem.no_split_classes};
  const auto is_offloaded = [&](muster::ModuleStrategy strategy) {
    problem.strategy = strategy;
    const auto plan = muster::plan_modules(problem, PlacementRules::Accelerate);
    if (!plan || muster::offloaded_bits(sized, plan->placement.map) > 0) return true;
    if (strategy != muster::ModuleStrategy::Auto || !least) return false;
    std::map<Place, std::int64_t> used;
    for (const auto& [node, place] : plan->placement.map) used[place] += model.bits[node];
    std::int64_t fullest = 0;
    for (const auto& [place, bits] : used) fullest = std::max(fullest, bits);
    counts.fullest.push_back(static_cast<double>(fullest / kBitsPerByte) / *least);
    return false;
  };
  counts.balanced += is_offloaded(muster::ModuleStrategy::Auto) ? 1 : 0;
  counts.low_zero += is_offloaded(muster::ModuleStrategy::BalancedLowZero) ? 1 : 0;
  counts.sequential += is_offloaded(muster::ModuleStrategy::Sequential) ? 1 : 0;
}

Counts study(const std::vector<StudyModel>& models, const Options& options) {
  constexpr std::uint64_t drawn_per_instance_max = 1000;
  Counts counts;
  std::mt19937_64 random(options.seed);
  while (counts.instances < options.count &&
         counts.drawn < options.count * drawn_per_instance_max) {
    ++counts.drawn;
    const auto& model = models[random() % models.size()];
    const auto gpus = random_gpus(random, options);
    double sum = 0;
    for (const auto bytes : gpus) sum += static_cast<double>(bytes);
    const double ratio = sum / static_cast<double>(model.bits[0] / kBitsPerByte);
    if (!options.range.empty() && (ratio < options.range[0] || ratio > options.range[1])) continue;
    if (!fits_in_order(model.chain, gpus)) continue;
    ++counts.instances;
    try_plan(model, gpus, counts);
    try_accelerate(model, gpus, try_muster(model, gpus, counts), counts);
  }
  std::sort(counts.fullest.begin(), counts.fullest.end());
  return counts;
}

void print(const Counts& counts) {
  const auto count = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  const auto quantile = [&](double share) {
    if (counts.fullest.empty()) return 0.0;
    return counts
        .fullest[static_cast<std::size_t>(share * static_cast<double>(counts.fullest.size() - 1))];
  };
  std::printf("{\"drawn\": %llu, \"instances\": %llu, \"accelerate\": {\"auto\": %llu, ",
              count(counts.drawn), count(counts.instances), count(counts.balanced));
  std::printf("\"balanced_low_0\": %llu, \"sequential\": %llu, ", count(counts.low_zero),
              count(counts.sequential));
  std::printf("\"fullest_over_least\": {\"median\": %.4f, \"p90\": %.4f, \"max\": %.4f}}, ",
              quantile(0.5), quantile(0.9), quantile(1.0));
  std::printf(
      "\"muster\": {\"modules\": %llu, \"chain_in_order\": %llu, \"chain_any_order\": %llu}, ",
      count(counts.muster_tree), count(counts.muster_in_order), count(counts.muster_any_order));
  std::printf("\"plan\": {\"instances\": %llu, \"offloaded\": %llu}}\n",
              count(counts.plan_instances), count(counts.plan_offloaded));
}

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
}

bool read_list(std::string_view text, std::vector<double>& values) {
  values.clear();
  for (const auto& piece : muster::split(text, ',')) {
    double value = 0;
    if (!read_number(piece, value) || value <= 0) return false;
    values.push_back(value);
  }
  return true;
}

bool read_option(std::string_view name, std::string_view value, Options& options) {
  if (name == "--seed") return read_number(value, options.seed);
  if (name == "--count") return read_number(value, options.count);
  if (name == "--margin-gib") return read_number(value, options.margin_gib);
  if (name == "--sizes") return read_list(value, options.sizes_gib);
  if (name == "--range") return read_list(value, options.range) && options.range.size() == 2;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !read_option(argv[i], argv[i + 1], options)) {
      std::fprintf(stderr, "mixed_devices: not an option with its value: %s\n", argv[i]);
      return 2;
    }
  }
  const auto models = muster::study_models();
  if (!models) {
    std::fprintf(stderr, "mixed_devices: %s\n", models.error().message.c_str());
    return muster::exit_code(models.error().kind);
  }
  print(study(*models, options));
  return 0;
}
