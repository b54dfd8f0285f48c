// A benchmark's file to begin with. It names what is on this machine, so it runs unedited; what
// else could be said stands in it as a comment with an example. Few samples and small sweeps keep
// the first run short.
#include "cli/sweep/init_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/bench_measurement.h"
#include "cli/sweep/availability_check.h"
#include "cli/sweep/sweep_facts.h"
#include "modelfile/hub_cache.h"

namespace muster {
namespace {

// A text as YAML's and JSON's double-quoted form, which any text has.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// "0, 1" of GPUs, "cpu:0" of others.
std::string ids_text(const std::vector<Device>& devices) {
  std::vector<std::string> ids;
  for (const auto& device : devices) {
    const bool is_number = device.kind == DeviceKind::Cuda && !device.slice;
    ids.push_back(is_number ? std::to_string(device.index) : quoted(device.name()));
  }
  return fmt::format("{}", fmt::join(ids, ", "));
}

// What is free now, less what the driver and others may still take.
// Source: shared practice of planners, 5 % and at least 2 GiB; `muster plan --margin`.
std::string memory_comment(const std::vector<Device>& devices) {
  constexpr std::uint64_t kLeast = 2ULL << 30;
  constexpr std::uint64_t kShare = 20;
  constexpr std::uint64_t kGb = 1'000'000'000;
  std::vector<std::string> limits;
  for (const auto& device : devices) {
    const auto free = device.memory_free_bytes;
    if (!free || device.slice) continue;
    const auto margin = std::max(kLeast, *free / kShare);
    limits.push_back(
        fmt::format("{}: {}GB", device.index, *free > margin ? (*free - margin) / kGb : 0));
  }
  if (limits.empty()) return {};
  return fmt::format(
      "  # At most so much of each GPU: the planner checks it before, the workers' counters "
      "after.\n"
      "  # max_memory: {{{}}}\n",
      fmt::join(limits, ", "));
}

std::string backend_text(const std::string& model, const std::string& task,
                         const std::vector<Device>& devices) {
  const bool has_gpus = devices.front().kind == DeviceKind::Cuda;
  auto text = fmt::format(
      "backend:\n"
      "  # muster serves the model itself; openai measures a server that runs already, at url.\n"
      "  type: muster\n"
      "  # A folder, a hub id or a GGUF file; a list of them is a sweep.\n"
      "  model: {}\n"
      "  task: {}\n"
      "  device: {}\n"
      "  # A copy of the model on each. A list of lists is a sweep: [[0], [0, 1]].\n"
      "  device_ids: [{}]\n",
      quoted(model), task, has_gpus ? "cuda" : "cpu", ids_text(devices));
  if (has_gpus) text += memory_comment(devices);
  return text +
         "  # auto measures which is fastest and exact enough; a sweep: [float32, bfloat16].\n"
         "  torch_dtype: auto\n";
}

std::string scenario_text(const std::string& task) {
  const bool generates = task == "generate";
  std::string text =
      "scenario:\n"
      "  # Texts of a file (.txt, .jsonl, .csv) instead of made ones; text_column_name is its "
      "field.\n"
      "  # dataset_name: prompts.jsonl\n"
      "  # text_column_name: text\n";
  text += fmt::format("  num_samples: {}\n", generates ? 16 : task == "rerank" ? 288 : 256);
  text += generates ? "  input_shapes:\n"
                      "    # Prompts that are asked at once; a list is a sweep.\n"
                      "    batch_size: [1, 4]\n"
                      "    # Words of a made prompt.\n"
                      "    sequence_length: 64\n"
                      "  generate_kwargs:\n"
                      "    max_new_tokens: 32\n"
                      "    # As many as max_new_tokens: replies of exactly that length.\n"
                      "    min_new_tokens: 32\n"
                    : "  input_shapes:\n"
                      "    # Texts in a request; a list is a sweep.\n"
                      "    batch_size: [1, 8, 32]\n"
                      "    # Words of a made text.\n"
                      "    sequence_length: 64\n";
  return text +
         "  # How often each point is measured; with five, `muster bench diff` can compare two "
         "runs.\n"
         "  trials: 1\n"
         "  # Of everything random: texts, times, the order of the points.\n"
         "  seed: 1\n";
}

constexpr std::string_view kRest =
    "metrics:\n"
    "  # Readings and joules of the devices while requests are under way.\n"
    "  enabled: true\n"
    "  # Grams of CO2 need an intensity and who says so:\n"
    "  # carbon_intensity_g_per_kwh: 380\n"
    "  # carbon_intensity_source: \"the grid operator's mean of 2025\"\n"
    "reporter:\n"
    "  type: csv\n"
    "  # A row for each point; each point with all its samples in the folder beside it.\n"
    "  output_file: ./results/benchmark_results.csv\n";

Result<std::string> chosen_model(const Arguments& arguments) {
  if (arguments.positionals.size() > 1) return arguments.positionals[1];
  for (const auto& id : cached_hub_ids(hub_cache())) {
    if (task_of_model(id)) return id;
  }
  return Error{ErrorKind::NotFound,
               "no model is in the local hub cache: name one, or fetch one by muster pull "
               "sentence-transformers/all-MiniLM-L6-v2"};
}

// GPUs that are all unfit leave the CPUs. Decoders run on CPUs in this build.
Result<std::vector<Device>> devices_for(const CommandContext& context, const std::string& task) {
  if (task != "generate") {
    auto devices = fit_devices(context, "auto");
    if (devices || devices.error().kind != ErrorKind::Unavailable) return devices;
  }
  return fit_devices(context, "cpu");
}

}  // namespace

std::string bench_file_text(const std::string& model, const std::string& task,
                            const std::vector<Device>& devices) {
  return "# A benchmark for `muster bench run`; docs/formats/bench-run.md has every key.\n"
         "name: benchmark\n" +
         backend_text(model, task, devices) + scenario_text(task) + std::string(kRest);
}

Result<int> write_bench_file(const CommandContext& context) {
  if (context.arguments.positionals.size() > 2) {
    return invalid_error("muster bench init wants one model at most");
  }
  const auto out = context.arguments.value("--out");
  if (out && (out->empty() || *out == "-")) {
    return invalid_error("-o wants the name of a file; without it the file is on standard output");
  }
  std::error_code ignored;
  if (out && std::filesystem::exists(*out, ignored)) {
    return invalid_error(
        fmt::format("-o {}: there is a file already: remove it, or name another", *out));
  }
  const auto model = MUSTER_TRY(chosen_model(context.arguments));
  const auto task = MUSTER_TRY(task_of_model(model));
  auto devices = MUSTER_TRY(devices_for(context, task));
  const auto kind = devices.front().kind;
  std::erase_if(devices, [kind](const Device& device) { return device.kind != kind; });
  const auto text = bench_file_text(model, task, devices);
  if (!out) {
    MUSTER_TRY(context.output.append(text));
    return 0;
  }
  MUSTER_TRY(write_file_atomically(*out, text));
  say_bench_step(fmt::format("{} is written; muster bench run {} measures it", *out, *out));
  return 0;
}

}  // namespace muster
