// mixed_devices [--seed N] [--count N] [--margin-gib X] [--sizes GIB,GIB,...] [--range LOW,HIGH]
//
// How often a device map offloads although the model fits the GPUs. Models are the weights of six
// published decoders in bfloat16, under their module names; a machine has 2 to 8 GPUs of 1 to 3
// memory sizes, in random order. A drawn machine counts when the chain of embedding, blocks and
// head, none cut, fits its GPUs in their order: the smallest index that is full hands over to the
// next, and with weights alone a longer prefix is never worse, so this walk decides it.
//
// Prints one JSON object: for accelerate's strategies (its rules are those of planner/accelerate_*)
// and for muster's, how many instances are offloaded in part, and what accelerate's fullest GPU
// holds over the least possible.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "planner/accelerate_placer.h"
#include "planner/accelerate_plan.h"
#include "planner/accelerate_repair.h"
#include "planner/chain.h"

namespace {

using muster::ModuleEntry;
using muster::Place;
using muster::PlaceKind;
using muster::PlacementRules;

constexpr std::int64_t kBitsPerByte = 8;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

/// Source: config.json of each on Hugging Face (meta-llama/Meta-Llama-3-8B and -70B,
/// Qwen/Qwen2.5-7B and -32B, mistralai/Mistral-7B-v0.3 and Mixtral-8x7B-v0.1). None ties its head.
struct Decoder {
  std::string_view name;
  std::int64_t vocab, hidden, layers, heads, kv_heads, head_size, intermediate, experts;
  bool has_qkv_bias;
};

constexpr std::array kDecoders = {
    Decoder{"Llama-3-8B", 128256, 4096, 32, 32, 8, 128, 14336, 0, false},
    Decoder{"Llama-3-70B", 128256, 8192, 80, 64, 8, 128, 28672, 0, false},
    Decoder{"Qwen2.5-7B", 152064, 3584, 28, 28, 4, 128, 18944, 0, true},
    Decoder{"Qwen2.5-32B", 152064, 5120, 64, 40, 8, 128, 27648, 0, true},
    Decoder{"Mistral-7B", 32768, 4096, 32, 32, 8, 128, 14336, 0, false},
    Decoder{"Mixtral-8x7B", 32000, 4096, 32, 32, 8, 128, 14336, 8, false},
};

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t count = 10000;
  double margin_gib = 1.0;  // llama.cpp's default for what is kept free on each device
  // The whole GiB of every GPU in src/spec/gpu_catalogue.cpp with at most 80.
  std::vector<double> sizes_gib = {9, 10, 15, 16, 22, 24, 32, 40, 45, 48, 60, 80};
  std::vector<double> range;  // of the GPUs' sum over the model; empty: any
};

ModuleEntry linear(std::string name, std::int64_t rows, std::int64_t columns,
                   bool has_bias = false) {
  ModuleEntry entry{std::move(name), "Linear", {{"weight", {rows, columns}, "bfloat16"}}, {}, {}};
  if (has_bias) entry.parameters.push_back({"bias", {rows}, "bfloat16"});
  return entry;
}

ModuleEntry norm(std::string name, std::int64_t size) {
  return {std::move(name), "RMSNorm", {{"weight", {size}, "bfloat16"}}, {}, {}};
}

ModuleEntry feed_forward(const Decoder& model) {
  if (model.experts == 0) {
    return {"mlp",
            "MLP",
            {},
            {},
            {linear("gate_proj", model.intermediate, model.hidden),
             linear("up_proj", model.intermediate, model.hidden),
             linear("down_proj", model.hidden, model.intermediate)}};
  }
  ModuleEntry experts{"experts", "ModuleList", {}, {}, {}};
  for (std::int64_t i = 0; i < model.experts; ++i) {
    experts.children.push_back({std::to_string(i),
                                "Expert",
                                {},
                                {},
                                {linear("w1", model.intermediate, model.hidden),
                                 linear("w2", model.hidden, model.intermediate),
                                 linear("w3", model.intermediate, model.hidden)}});
  }
  return {"block_sparse_moe",
          "SparseMoeBlock",
          {},
          {},
          {linear("gate", model.experts, model.hidden), std::move(experts)}};
}

ModuleEntry module_tree(const Decoder& model) {
  const auto query = model.heads * model.head_size;
  const auto key = model.kv_heads * model.head_size;
  const bool bias = model.has_qkv_bias;
  ModuleEntry layers{"layers", "ModuleList", {}, {}, {}};
  for (std::int64_t i = 0; i < model.layers; ++i) {
    ModuleEntry attention{
        "self_attn",
        "Attention",
        {},
        {},
        {linear("q_proj", query, model.hidden, bias), linear("k_proj", key, model.hidden, bias),
         linear("v_proj", key, model.hidden, bias), linear("o_proj", model.hidden, query)}};
    layers.children.push_back(
        {std::to_string(i),
         "DecoderLayer",
         {},
         {},
         {std::move(attention), feed_forward(model), norm("input_layernorm", model.hidden),
          norm("post_attention_layernorm", model.hidden)}});
  }
  ModuleEntry embedding{
      "embed_tokens", "Embedding", {{"weight", {model.vocab, model.hidden}, "bfloat16"}}, {}, {}};
  ModuleEntry decoder{"model",
                      "Model",
                      {},
                      {},
                      {std::move(embedding), std::move(layers), norm("norm", model.hidden)}};
  return {"",
          "ForCausalLM",
          {},
          {},
          {std::move(decoder), linear("lm_head", model.vocab, model.hidden)}};
}

/// A model as a tree for accelerate's rules and as a chain for muster's.
struct Model {
  std::string_view name;
  muster::ModuleTree tree;
  std::vector<std::int64_t> bits;    // [nodes]
  std::vector<std::uint64_t> chain;  // bytes of the units
};

std::optional<Model> prepared(const Decoder& decoder) {
  Model model{decoder.name, {}, {}, {}};
  auto tree = muster::flatten_modules(module_tree(decoder), {});
  if (!tree) return std::nullopt;
  model.tree = *std::move(tree);
  auto bits = muster::module_bits(model.tree, {});
  if (!bits) return std::nullopt;
  model.bits = *std::move(bits);
  const auto bytes = [&](const std::string& name) {
    return static_cast<std::uint64_t>(model.bits[*model.tree.find(name)] / kBitsPerByte);
  };
  model.chain.push_back(bytes("model.embed_tokens"));
  for (std::int64_t i = 0; i < decoder.layers; ++i) {
    model.chain.push_back(bytes("model.layers." + std::to_string(i)));
  }
  model.chain.push_back(bytes("model.norm") + bytes("lm_head"));
  return model;
}

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
  std::vector<double> fullest;  // accelerate's auto, where nothing is offloaded
};

muster::ModuleCase case_of(const Model& model, const std::vector<std::uint64_t>& gpus) {
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

muster::ChainProblem chain_problem(const Model& model, const std::vector<std::uint64_t>& gpus) {
  muster::ChainProblem problem;
  problem.bytes = model.chain;
  problem.capacity = gpus;
  std::vector<double> seconds(model.chain.begin(), model.chain.end());  // as many as bytes
  problem.seconds.assign(gpus.size(), seconds);
  return problem;
}

/// muster's placements; returns the least fullest stage in the GPUs' order.
std::optional<double> try_muster(const Model& model, const std::vector<std::uint64_t>& gpus,
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

  auto sizes = gpus;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
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

void try_accelerate(const Model& model, const std::vector<std::uint64_t>& gpus,
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

Counts study(const std::vector<Model>& models, const Options& options) {
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
      "\"muster\": {\"modules\": %llu, \"chain_in_order\": %llu, \"chain_any_order\": %llu}}\n",
      count(counts.muster_tree), count(counts.muster_in_order), count(counts.muster_any_order));
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
  std::vector<Model> models;
  for (const auto& decoder : kDecoders) {
    auto model = prepared(decoder);
    if (!model) return 70;
    models.push_back(*std::move(model));
  }
  print(study(models, options));
  return 0;
}
