// Memory is a bound that is checked before a worker starts: one that is too large for its device is
// killed by the kernel load after load, and perhaps others with it.

#include "serving/decoder_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "coordinator/decoder_workers.h"
#include "modelfile/model_description.h"
#include "planner/memory/activation_memory.h"
#include "planner/memory/memory_model.h"
#include "planner/plan/device_budget.h"
#include "planner/plan/plan.h"
#include "scheduler/steps.h"
#include "spec/cpu_decoder_memory.h"
#include "spec/gpu_decoder_memory.h"
#include "spec/row_blocks.h"

namespace muster {
namespace {

// A row of a tensor. Vectors are not put into blocks.
std::uint64_t row_bytes(std::uint64_t size, bool is_vector, DecoderPrecision precision) {
  constexpr std::uint64_t kBlock = 32;       // weights of a block of int8
  constexpr std::uint64_t kBlockBytes = 34;  // a byte each, and a scale of two
  if (precision == DecoderPrecision::Fp32) return size * sizeof(float);
  if (precision == DecoderPrecision::Bf16) return size * sizeof(std::uint16_t);
  return is_vector ? size * sizeof(float) : (size + kBlock - 1) / kBlock * kBlockBytes;
}

// Every weight in that precision.
std::uint64_t converted_bytes(const ModelDescription& model, DecoderPrecision precision) {
  std::uint64_t sum = 0;
  for (const auto& tensor : model.tensors) {
    if (tensor.shape.empty()) continue;
    std::uint64_t bytes = row_bytes(static_cast<std::uint64_t>(tensor.shape.back()),
                                    tensor.shape.size() == 1, precision);
    for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) {
      bytes *= static_cast<std::uint64_t>(tensor.shape[i]);
    }
    sum += bytes;
  }
  return sum;
}

// Where a device stands in the machine's list.
std::optional<std::size_t> place_of(const Machine& machine, const Device& device) {
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    const auto& one = machine.devices[i];
    if (one.kind == device.kind && one.index == device.index) return i;
  }
  return std::nullopt;
}

std::uint64_t logits_rows(std::uint32_t sequences_most) {
  return sequences_most + StepOptions{}.scored_most;
}

// nullopt: the engine does not compute it on a CPU, or not in this precision.
std::optional<DecoderDemand> cpu_demand(const ModelDescription& model, const CpuDecoderRun& run) {
  if (!model.decoder || !is_cpu_decoder(*model.decoder)) return std::nullopt;
  DecoderDemand demand;
  for (const auto& unit : model.units) {
    const auto weights = cpu_decoder_weights(model, unit, run.precision);
    if (!weights) return std::nullopt;
    demand.weights_bytes += weights->total();
  }
  const auto step = cpu_decoder_step(model, run);
  demand.work_bytes = step.counted_peak() + step.sampling;
  demand.logits_bytes = step.logits;
  return demand;
}

// What a GPU's attention takes beside the rows of a step.
std::uint64_t gpu_attention_bytes(const DecoderSpec& spec, DecoderPrecision precision,
                                  std::uint32_t length_max, std::uint32_t sequences_most) {
  return gpu_gather_bytes(spec, precision == DecoderPrecision::Fp32, length_max) +
         gpu_rotation_bytes(spec) +
         gpu_list_bytes(spec, {.rows = DecoderFleetOptions{}.step_tokens_most,
                               .logit_rows = logits_rows(sequences_most),
                               .sequences = sequences_most,
                               .length = length_max});
}

// Whether a process there has a driver's context and the workspaces of matrix libraries. The
// stand-in for a GPU has neither, and a memory that they would half fill.
bool has_context(DeviceKind device) {
  return device == DeviceKind::Cuda || device == DeviceKind::Rocm;
}

// As `muster plan` counts a device that is no CPU, or a model that is not computed.
Result<DecoderDemand> planned_demand(ModelDescription model, DecoderPrecision precision,
                                     std::uint32_t length_max, std::uint32_t sequences_most,
                                     DeviceKind device) {
  std::uint64_t attention = 0;
  if (runs_as_gpu(device) && model.decoder) {
    attention = gpu_attention_bytes(*model.decoder, precision, length_max, sequences_most);
  }
  model.decoder.reset();
  Workload workload;
  workload.task = PlanTask::Generate;
  workload.context = length_max;
  workload.prefill_tokens = std::min(length_max, DecoderFleetOptions{}.step_tokens_most);
  const StageShare whole{.last_unit = static_cast<std::uint32_t>(model.units.size()),
                         .is_gpu = has_context(device)};
  const auto parts = MUSTER_TRY(stage_memory(model, workload, whole));
  const bool is_as_stored = precision == DecoderPrecision::Own;
  const auto rows = logits_rows(sequences_most);
  const auto logits = muster::logits_bytes(model.shape.vocab_size,
                                           runs_as_gpu(device) ? gpu_rows_computed(rows) : rows, 1);
  return DecoderDemand{
      .weights_bytes = is_as_stored ? parts.weights : converted_bytes(model, precision),
      .work_bytes = parts.activations + parts.workspace + parts.context + attention,
      .logits_bytes = logits,
      // Source: engine/ops/row_counts.cpp: expected rows, the same rolled, and those of a count.
      .test_bytes = runs_as_gpu(device) ? 3 * logits : 0};
}

std::uint64_t less(std::uint64_t whole, std::uint64_t part) {
  return whole > part ? whole - part : 0;
}

}  // namespace

DecoderPlace DecoderPlace::of(const Device& device) {
  return {.device = device.kind,
          .threads = std::max(1U, static_cast<std::uint32_t>(device.cpus.size()))};
}

Result<DecoderDemand> decoder_demand(const std::filesystem::path& source,
                                     DecoderPrecision precision, std::uint32_t length_max,
                                     const DecoderPlace& place, std::uint32_t sequences_most) {
  auto model = MUSTER_TRY(describe_model(source));
  if (place.device == DeviceKind::Cpu) {
    const CpuDecoderRun run{.precision = precision,
                            .step_tokens = DecoderFleetOptions{}.step_tokens_most,
                            .logits_rows = logits_rows(sequences_most),
                            .threads = place.threads,
                            .context = length_max};
    if (const auto demand = cpu_demand(model, run)) return *demand;
  }
  return planned_demand(std::move(model), precision, length_max, sequences_most, place.device);
}

// A machine with GPUs has its CPUs as host memory alone: each of the server's has an equal share.
DeviceMemory::DeviceMemory(const Machine& machine, const std::vector<Device>& devices)
    : usable_(devices.size()) {
  const auto is_cpu = [](const auto& device) { return device.kind == DeviceKind::Cpu; };
  const auto cpu_count =
      static_cast<std::uint64_t>(std::count_if(devices.begin(), devices.end(), is_cpu));
  // The margin is that of a plan to generate; names of devices alone could make it fail.
  const auto margin = default_margin(ModelDescription{}, Workload{});
  const auto budgets = machine_budgets(machine, margin, PlanRequest{});
  if (!budgets) return;
  const bool has_cpus = std::all_of(machine.devices.begin(), machine.devices.end(), is_cpu) &&
                        machine.devices.size() == devices.size();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!is_cpu(devices[i])) {
      if (const auto place = place_of(machine, devices[i])) {
        usable_[i].bytes = budgets->devices[*place].usable_bytes;
      }
      continue;
    }
    usable_[i].is_of_host = true;
    if (has_cpus) {
      usable_[i].bytes = budgets->devices[i].usable_bytes;
    } else if (budgets->host.usable_bytes > 0) {
      usable_[i].bytes = budgets->host.usable_bytes / cpu_count;
    }
    usable_of_cpus_ += usable_[i].bytes.value_or(0);
  }
}

std::optional<std::uint64_t> DeviceMemory::room(std::size_t device, std::uint64_t planned,
                                                std::optional<std::uint64_t> available) const {
  const auto [usable, is_of_host] = usable_[device];
  if (!usable) return std::nullopt;
  const auto left = less(*usable, planned);
  if (!available || !is_of_host || usable_of_cpus_ == 0) return left;
  const auto share = static_cast<double>(*usable) / static_cast<double>(usable_of_cpus_);
  return std::min(left, static_cast<std::uint64_t>(static_cast<double>(*available) * share));
}

}  // namespace muster
