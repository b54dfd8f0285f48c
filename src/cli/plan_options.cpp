// Words of the command line as a workload and limits of the planner. Most choices come from the
// tables that also print them, so that help, completion and parsing cannot disagree. A count of 0
// is never meant: it is refused, and leaving the flag out is what asks for the default.

#include "cli/plan_options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "planner/forms/plan_json.h"
#include "planner/plan/max_memory.h"

namespace muster {
namespace {

Error wrong_value(std::string_view flag, std::string_view value, std::string_view wanted) {
  return Error{ErrorKind::InvalidArgument, fmt::format("{} {}: wanted {}", flag, value, wanted)};
}

// One of a list of words, or an error that names the nearest.
template <typename T, std::size_t N>
Result<T> word_of(std::string_view flag, std::string_view value,
                  const std::array<std::pair<std::string_view, T>, N>& words) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : words) {
    if (name == value) return meaning;
    names.emplace_back(name);
  }
  if (const auto nearest = nearest_name(value, names)) {
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("{} {}: did you mean {}?", flag, value, *nearest)};
  }
  return wrong_value(flag, value, fmt::format("one of {}", fmt::join(names, ", ")));
}

// A whole number of 1 or more, all of `text`.
std::optional<std::uint32_t> parse_count(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

Result<std::optional<std::uint32_t>> count_of(const Arguments& arguments, std::string_view flag) {
  const auto text = arguments.value(flag);
  if (!text) return std::optional<std::uint32_t>();
  const auto value = parse_count(*text);
  if (!value) return wrong_value(flag, *text, "a whole number of 1 or more");
  return value;
}

// Lengths are spoken of in units of 1,024 tokens: a model of "8k" has 8,192 positions.
constexpr std::uint32_t kTokensPerK = 1024;

Result<std::optional<std::uint32_t>> tokens_of(const Arguments& arguments, std::string_view flag) {
  const auto text = arguments.value(flag);
  if (!text) return std::optional<std::uint32_t>();
  const bool is_in_k = text->ends_with('k') || text->ends_with('K');
  const std::uint32_t unit = is_in_k ? kTokensPerK : 1;
  auto number = std::string_view(*text);
  if (is_in_k) number.remove_suffix(1);
  const auto value = parse_count(number);
  if (!value || *value > std::numeric_limits<std::uint32_t>::max() / unit) {
    return wrong_value(flag, *text, "a whole number of tokens, such as 8192 or 8k");
  }
  return std::optional(*value * unit);
}

// The words for `values`, by the names under which they are printed.
template <typename T, std::size_t N>
std::array<std::pair<std::string_view, T>, N> named(const std::array<T, N>& values,
                                                    std::string_view (*name)(T)) {
  std::array<std::pair<std::string_view, T>, N> words;
  for (std::size_t i = 0; i < N; ++i) words[i] = {name(values[i]), values[i]};
  return words;
}

constexpr std::array<std::pair<std::string_view, TrainingPrecision>, 4> kTrainingPrecisions{{
    {"fp32", TrainingPrecision::Fp32},
    {"mixed", TrainingPrecision::Mixed},
    {"mixed-fp32-grad", TrainingPrecision::MixedFp32Grad},
    {"bf16", TrainingPrecision::Bf16},
}};

constexpr std::array<std::pair<std::string_view, std::uint32_t>, 4> kZeroStages{{
    {"0", 0},
    {"1", 1},
    {"2", 2},
    {"3", 3},
}};

constexpr std::array kTasks{PlanTask::Embed, PlanTask::Generate, PlanTask::Train};
constexpr std::array kStrategies{PlanStrategy::Auto,         PlanStrategy::Balanced,
                                 PlanStrategy::BalancedLow0, PlanStrategy::Sequential,
                                 PlanStrategy::Custom,       PlanStrategy::Replicate};
constexpr std::array kObjectives{PlanObjective::Throughput, PlanObjective::Latency,
                                 PlanObjective::FewestDevices};

// The words of a table, for help and for a shell.
template <typename T, std::size_t N>
std::vector<std::string> words_of(const std::array<std::pair<std::string_view, T>, N>& table) {
  std::vector<std::string> words;
  for (const auto& [name, meaning] : table) words.emplace_back(name);
  return words;
}

// Read for every task, so that a wrong value is refused even where it would not count.
Result<TrainingOptions> training_of(const Arguments& arguments) {
  TrainingOptions training;
  if (const auto text = arguments.value("--training-precision")) {
    training.precision = MUSTER_TRY(word_of("--training-precision", *text, kTrainingPrecisions));
  }
  if (const auto text = arguments.value("--zero")) {
    training.zero_stage = MUSTER_TRY(word_of("--zero", *text, kZeroStages));
  }
  training.data_parallel = MUSTER_TRY(count_of(arguments, "--zero-ranks")).value_or(1);
  training.recompute = arguments.has("--recompute");
  training.flash_attention = !arguments.has("--math-attention");
  training.microbatches = MUSTER_TRY(count_of(arguments, "--microbatches")).value_or(1);
  return training;
}

// A whole device cannot be margin: 100 % would leave nothing to plan with.
Result<PlanMargin> margin_of(std::string_view text) {
  if (text.ends_with('%')) {
    double percent = 0.0;
    const auto number = text.substr(0, text.size() - 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), percent);
    if (error == std::errc() && end == number.data() + number.size() && percent >= 0.0 &&
        percent < 100.0) {
      return PlanMargin{.share = percent / 100.0, .bytes = 0};
    }
    return wrong_value("--margin", text, "a share such as 5%, or a size such as 1GB");
  }
  return PlanMargin{.share = 0.0, .bytes = MUSTER_TRY(parse_memory_size(text))};
}

}  // namespace

FlagGroup workload_flags() {
  return {"Load",
          {},
          {{.name = "--task",
            .value_name = "TASK",
            .help = "embed, generate or train (default: embed for an encoder)",
            .choices = words_of(named(kTasks, plan_task_name))},
           {"--context", "N", "tokens of prompt and answer, such as 8k (default: the model's)"},
           {"--batch", "N", "sequences at once (default: 1)"},
           {.name = "--dtype",
            .value_name = "DTYPE",
            .help = "weights as fp32, bf16, fp16; on CPUs int8, too (default: as stored)",
            .choices = {"fp32", "bf16", "fp16", "int8"}},
           {.name = "--kv-dtype",
            .value_name = "DTYPE",
            .help = "the cache in fp16, bf16, int8, fp8, q8_0, q4_0 … (default: auto)",
            .choices = {"auto", "fp32", "fp16", "bf16", "int8", "fp8", "q8_0", "q5_1", "q5_0",
                        "q4_1", "q4_0", "iq4_nl"}},
           {"--kv-block", "N", "tokens that a paged cache takes at once (default: 16; 1: unpaged)"},
           {"--prefill-tokens", "N", "of a prompt in one step (default: all of it)"},
           {"--all-logits", "", "logits of every prompt token, not of the last alone"},
           {"--math-attention", "", "the attention matrix is made in memory"},
           {.name = "--training-precision",
            .value_name = "KIND",
            .help = "fp32, mixed, mixed-fp32-grad or bf16 (default: mixed)",
            .choices = words_of(kTrainingPrecisions)},
           {.name = "--zero",
            .value_name = "STAGE",
            .help = "ZeRO stage 0 to 3 (default: 0)",
            .choices = words_of(kZeroStages)},
           {"--zero-ranks", "N", "ranks that a ZeRO stage divides over (default: 1)"},
           {"--recompute", "", "activations are computed again in the backward pass"},
           {"--microbatches", "N", "in flight in a pipeline (default: 1)"}}};
}

FlagGroup placement_flags() {
  return {
      "Placement",
      {},
      {{"--machine", "WHAT", "here, a file, or sim:8xH100-80G (default: here)"},
       {.name = "--strategy",
        .value_name = "NAME",
        .help = "auto, balanced, balanced_low_0, sequential, replicate or custom (default: auto)",
        .choices = words_of(named(kStrategies, plan_strategy_name))},
       {.name = "--objective",
        .value_name = "NAME",
        .help = "throughput, latency or fewest-devices (default: throughput)",
        .choices = words_of(named(kObjectives, plan_objective_name))},
       {"--max-memory", "LIST", "at most this much, such as cuda:0=20GB,cpu=64GiB"},
       {"--margin", "SIZE",
        "kept free on each device, such as 5% or 1GB (default: what the "
        "memory model may be off by)"},
       {"--no-offload", "", "never to host memory or disk"},
       {"--tensor-parallel", "N", "this many devices a stage and no other"},
       {"--pipeline-parallel", "N", "this many stages a copy and no other"},
       {"--data-parallel", "N", "this many copies and no other"},
       {"--map", "FILE",
        "place as the file says: a plan, an hf_device_map, a tensor split "
        "or vLLM flags (strategy custom)"}}};
}

Result<Workload> workload_of(const Arguments& arguments, ModelKind kind) {
  Workload workload;
  // What a model of this kind is mostly used for; training is always asked for by name.
  workload.task = kind == ModelKind::Encoder ? PlanTask::Embed : PlanTask::Generate;
  if (const auto text = arguments.value("--task")) {
    workload.task = MUSTER_TRY(word_of("--task", *text, named(kTasks, plan_task_name)));
  }
  workload.batch = MUSTER_TRY(count_of(arguments, "--batch")).value_or(1);
  workload.context = MUSTER_TRY(tokens_of(arguments, "--context")).value_or(0);
  workload.prefill_tokens = MUSTER_TRY(tokens_of(arguments, "--prefill-tokens")).value_or(0);
  workload.kv_block = MUSTER_TRY(count_of(arguments, "--kv-block")).value_or(workload.kv_block);
  workload.all_logits = arguments.has("--all-logits");
  workload.math_attention = arguments.has("--math-attention");
  workload.dtype = arguments.value("--dtype");
  workload.kv_dtype = arguments.value("--kv-dtype").value_or(workload.kv_dtype);
  workload.training = MUSTER_TRY(training_of(arguments));
  return workload;
}

Result<PlanRequest> plan_request_of(const Arguments& arguments, ModelKind kind) {
  PlanRequest request;
  request.workload = MUSTER_TRY(workload_of(arguments, kind));
  if (const auto text = arguments.value("--strategy")) {
    const auto strategies = named(kStrategies, plan_strategy_name);
    request.strategy = MUSTER_TRY(word_of("--strategy", *text, strategies));
  } else if (arguments.has("--map")) {
    request.strategy = PlanStrategy::Custom;
  }
  if (const auto text = arguments.value("--objective")) {
    const auto objectives = named(kObjectives, plan_objective_name);
    request.objective = MUSTER_TRY(word_of("--objective", *text, objectives));
  }
  for (const auto& limit :
       MUSTER_TRY(parse_memory_limits(arguments.value("--max-memory").value_or("")))) {
    request.max_memory.emplace_back(limit.device, limit.bytes);
  }
  if (const auto text = arguments.value("--margin")) request.margin = MUSTER_TRY(margin_of(*text));
  request.may_offload = !arguments.has("--no-offload");
  request.tensor_parallel = MUSTER_TRY(count_of(arguments, "--tensor-parallel"));
  request.pipeline_parallel = MUSTER_TRY(count_of(arguments, "--pipeline-parallel"));
  request.data_parallel = MUSTER_TRY(count_of(arguments, "--data-parallel"));
  return request;
}

}  // namespace muster
