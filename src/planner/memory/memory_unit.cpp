// Takes each unit's memory apart by task, so that stages can be summed from units. Encoders that
// the engine runs, training and plain inference have parts of their own: what is kept differs, not
// only how much. A tied head owns no weights while its embedding is in the same stage; apart from
// it, it holds a copy with all its states, which is kept out of the units and added by the stage.

#include "planner/memory/memory_unit.h"

#include <algorithm>
#include <optional>

#include "planner/memory/activation_memory.h"
#include "planner/memory/kv_cache.h"
#include "planner/memory/memory_arithmetic.h"
#include "planner/memory/memory_encoder.h"
#include "planner/memory/memory_weights.h"
#include "planner/memory/training_memory.h"
#include "spec/cpu_decoder_memory.h"

namespace muster {
namespace {

constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kId = 8;
// That a worker has at once; a row of logits of each is in CpuDecoderRun. Source:
// wire/generation_messages.h, LoadDecoder.
constexpr std::uint64_t kDecoderSequences = 32;

StepDemand step_of(const MemoryDemand& demand) {
  return {.sequences = demand.workload.batch,
          .tokens = demand.step_tokens,
          .context = demand.context,
          .element_bytes = demand.element_bytes,
          .tensor_parallel = demand.tensor_parallel,
          .math_attention = demand.workload.math_attention};
}

CacheDemand cache_of(const MemoryDemand& demand) {
  return {.sequences = demand.workload.batch,
          .tokens = demand.context,
          .format = demand.cache_format,
          .state_bytes = demand.element_bytes,
          .block = demand.workload.kv_block,
          .keeps_window_only = demand.workload.cache_keeps_window_only && !demand.cpu_decoder,
          .tensor_parallel = demand.tensor_parallel};
}

MicrobatchDemand microbatch_of(const MemoryDemand& demand) {
  return {.sequences = demand.workload.batch,
          .tokens = demand.context,
          .element_bytes = demand.element_bytes,
          .tensor_parallel = demand.tensor_parallel,
          .flash_attention = demand.workload.training.flash_attention};
}

// Rows of logits that are alive at once.
std::uint64_t logit_rows(const MemoryDemand& demand) {
  const bool is_all = demand.workload.all_logits || demand.workload.task == PlanTask::Train;
  return multiply_bytes(demand.workload.batch, is_all ? demand.step_tokens : 1);
}

UnitParts inference_parts(const MemoryDemand& demand, const ModelUnit& unit) {
  const auto& shape = demand.model.shape;
  const auto step = step_of(demand);
  UnitParts parts;
  parts.weights = unit_weight_bytes(
      demand.model, unit,
      {.element_bytes = demand.weight_element_bytes, .tensor_parallel = demand.tensor_parallel});
  switch (unit.kind) {
    case UnitKind::Embedding:
      parts.activations = embedding_peak_bytes(shape.hidden_size, step);
      break;
    case UnitKind::Block: {
      const auto& layer = shape.layers[unit.layer];
      parts.activations = block_peak_bytes(layer, shape.hidden_size, step);
      if (demand.workload.task == PlanTask::Generate) {
        parts.kv_cache = layer_cache_bytes(layer, cache_of(demand));
      }
      break;
    }
    case UnitKind::Head: {
      const bool has_logits = shape.has_head && demand.workload.task == PlanTask::Generate;
      const auto rows = logit_rows(demand);
      parts.activations = head_peak_bytes(shape.hidden_size, rows, step);
      if (has_logits) parts.logits = logits_bytes(shape.vocab_size, rows, demand.tensor_parallel);
      break;
    }
  }
  return parts;
}

bool has_float32_matrices(const ModelDescription& model) {
  return std::all_of(model.tensors.begin(), model.tensors.end(), [](const WeightTensor& tensor) {
    return tensor.shape.size() < 2 || !tensor.is_floating || tensor.dtype == "F32";
  });
}

// What the engine holds: not the stored bytes, and nothing of a pooler.
UnitParts encoder_parts(const MemoryDemand& demand, const ModelUnit& unit) {
  const auto& shape = demand.model.shape;
  const auto element_bytes = demand.element_bytes;
  const EncoderRun run{
      .element_bytes = element_bytes, .is_int8 = demand.is_int8_encoder, .lanes = demand.lanes};
  UnitParts parts;
  if (unit.kind == UnitKind::Embedding) {
    parts.weights =
        demand.is_gpu ? gpu_encoder_table_bytes(shape, element_bytes) : encoder_table_bytes(shape);
    if (!demand.is_gpu) {
      parts.activations = encoder_load_bytes(shape, run, has_float32_matrices(demand.model));
    }
  } else if (unit.kind == UnitKind::Block) {
    const auto& layer = shape.layers[unit.layer];
    parts.weights = demand.is_gpu ? gpu_encoder_layer_bytes(shape, layer, element_bytes)
                                  : encoder_layer_bytes(shape, layer, run);
    parts.activations =
        demand.is_gpu
            ? gpu_encoder_pass_bytes(shape, demand.context, element_bytes)
            : multiply_bytes(demand.lanes,
                             encoder_lane_bytes(shape, demand.workload.batch, demand.context, run));
  }
  return parts;
}

// A worker makes room for its steps when it loads, so that every unit has the same.
CpuDecoderStep decoder_step(const MemoryDemand& demand) {
  CpuDecoderRun run{
      .precision = *demand.cpu_decoder, .threads = demand.lanes, .context = demand.context};
  // A row for each sequence beyond those that a worker has anyway.
  const std::uint64_t batch = demand.workload.batch;
  run.logits_rows += batch > kDecoderSequences ? batch - kDecoderSequences : 0;
  return cpu_decoder_step(demand.model, run);
}

// What the engine holds on a CPU: a tied head twice, and rows for whole steps however long the
// prompts are.
UnitParts decoder_parts(const MemoryDemand& demand, const ModelUnit& unit,
                        const CpuDecoderStep& step) {
  const auto& shape = demand.model.shape;
  UnitParts parts;
  parts.weights = cpu_decoder_weights(demand.model, unit, *demand.cpu_decoder)->total();
  parts.activations = add_bytes(step.counted_peak(), step.sampling);
  if (unit.kind == UnitKind::Block) {
    parts.kv_cache = layer_cache_bytes(shape.layers[unit.layer], cache_of(demand));
  } else if (unit.kind == UnitKind::Head) {
    parts.logits = step.logits;
  }
  return parts;
}

void add_states(UnitParts& parts, const TrainingStates& states) {
  parts.weights = add_bytes(parts.weights, states.weights);
  parts.gradients = add_bytes(parts.gradients, states.gradients);
  parts.optimizer = add_bytes(parts.optimizer, states.optimizer);
  parts.activations = add_bytes(parts.activations, states.gathered);
}

// Stored bytes of what is not trained: buffers of integers.
std::uint64_t untrained_bytes(const ModelDescription& model, const ModelUnit& unit) {
  std::uint64_t sum = 0;
  for (const auto index : unit.tensors) {
    if (!model.tensors[index].is_floating) sum = add_bytes(sum, model.tensors[index].bytes);
  }
  return sum;
}

void add_training_activations(const MemoryDemand& demand, const ModelUnit& unit, UnitParts& parts) {
  const auto& shape = demand.model.shape;
  const auto& training = demand.workload.training;
  const auto batch = microbatch_of(demand);
  const auto input = layer_input_bytes(shape.hidden_size, batch);
  const auto in_flight = [&](std::uint64_t bytes) {
    return multiply_bytes(bytes, training.microbatches);
  };
  switch (unit.kind) {
    case UnitKind::Embedding:
      parts.kept = in_flight(multiply_bytes(batch.sequences, batch.tokens, kId));
      parts.activations = add_bytes(parts.activations, multiply_bytes(2, input));
      break;
    case UnitKind::Block: {
      const auto& layer = shape.layers[unit.layer];
      const auto whole = layer_kept_bytes(layer, shape.hidden_size, batch);
      parts.kept = in_flight(training.recompute ? input : whole);
      parts.activations = add_bytes(parts.activations, training.recompute ? whole : 0,
                                    layer_backward_bytes(layer, shape.hidden_size, batch));
      break;
    }
    case UnitKind::Head: {
      // The normalisation's input and output; the logits and their gradient, both float32.
      parts.kept = in_flight(multiply_bytes(2, input));
      parts.activations = add_bytes(parts.activations, multiply_bytes(2, input));
      const auto columns = divide_up(shape.vocab_size, demand.tensor_parallel);
      if (shape.has_head) {
        parts.logits = multiply_bytes(2, logit_rows(demand), columns, kFloat);
      }
      break;
    }
  }
}

// Of the embedding that a tied head multiplies by, on one device.
std::uint64_t tied_elements(const MemoryDemand& demand) {
  const auto* matrix = tied_matrix(demand.model);
  const std::uint64_t vocab = demand.model.shape.vocab_size;
  if (matrix == nullptr) return 0;
  return share_of(element_count(*matrix), divide_up(vocab, demand.tensor_parallel), vocab);
}

UnitParts train_parts(const MemoryDemand& demand, const ModelUnit& unit) {
  const auto& training = demand.workload.training;
  UnitParts parts;
  parts.weights = untrained_bytes(demand.model, unit);
  add_states(parts, training_states(trained_elements(demand.model, unit, demand.tensor_parallel),
                                    training));
  if (unit.kind == UnitKind::Head) {
    // Stage 3 gathers the tied matrix once more while the head computes.
    parts.activations =
        add_bytes(parts.activations, training_states(tied_elements(demand), training).gathered);
  }
  add_training_activations(demand, unit, parts);
  return parts;
}

}  // namespace

std::uint64_t UnitParts::peak() const { return add_bytes(activations, logits); }

std::vector<UnitParts> unit_parts(const MemoryDemand& demand) {
  std::vector<UnitParts> parts;
  parts.reserve(demand.model.units.size());
  const bool is_train = demand.workload.task == PlanTask::Train;
  std::optional<CpuDecoderStep> step;
  if (demand.cpu_decoder) step = decoder_step(demand);
  for (const auto& unit : demand.model.units) {
    parts.push_back(demand.is_engine_encoder ? encoder_parts(demand, unit)
                    : step                   ? decoder_parts(demand, unit, *step)
                    : is_train               ? train_parts(demand, unit)
                                             : inference_parts(demand, unit));
  }
  return parts;
}

UnitParts tied_copy_parts(const MemoryDemand& demand) {
  UnitParts parts;
  const auto* matrix = tied_matrix(demand.model);
  const std::uint64_t vocab = demand.model.shape.vocab_size;
  const auto rows = divide_up(vocab, demand.tensor_parallel);
  if (demand.model.tied_bytes == 0 || demand.cpu_decoder) return parts;
  if (matrix == nullptr) {
    parts.weights = share_of(demand.model.tied_bytes, rows, vocab);
  } else if (demand.workload.task == PlanTask::Train) {
    const auto states = training_states(tied_elements(demand), demand.workload.training);
    parts.weights = states.weights;
    parts.gradients = states.gradients;
    parts.optimizer = states.optimizer;
  } else {
    parts.weights = share_of(loaded_bytes(*matrix, demand.weight_element_bytes), rows, vocab);
  }
  return parts;
}

}  // namespace muster
