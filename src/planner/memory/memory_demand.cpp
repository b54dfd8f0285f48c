// A workload's defaults and contradictions are settled here, once, before any formula runs: the
// formulas may then divide and index without checks. What cannot be modelled is refused by name
// rather than guessed, as a figure that looks exact would be believed. Training sets the width of
// weights by its precision, so another dtype beside it is a contradiction and not a preference.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "planner/memory/memory_encoder.h"
#include "planner/memory/memory_model.h"
#include "planner/memory/memory_unit.h"
#include "spec/cpu_decoder_memory.h"

namespace muster {
namespace {

// What our engine alone computes, and on CPUs alone.
constexpr std::string_view kInt8 = "int8";

template <typename... Values>
Error invalid(fmt::format_string<Values...> words, Values&&... values) {
  return Error{ErrorKind::InvalidArgument, fmt::format(words, std::forward<Values>(values)...)};
}

Status check_task(const ModelDescription& model, const Workload& workload) {
  if (workload.task == PlanTask::Generate && model.shape.kind == ModelKind::Encoder) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("an encoder does not generate text: {} is of the family {}",
                             model.name, model.shape.family)};
  }
  if (workload.task != PlanTask::Train) return Done{};
  for (const auto& layer : model.shape.layers) {
    if (layer.attention == AttentionKind::Recurrent) {
      return Error{
          ErrorKind::Unsupported,
          fmt::format("training memory of recurrent layers is not modelled: {}", model.name)};
    }
  }
  for (const auto& tensor : model.tensors) {
    if (!tensor.is_floating && tensor.shape.size() == 2) {
      return Error{
          ErrorKind::Unsupported,
          fmt::format("quantised weights are not trained: {} is {}", tensor.name, tensor.dtype)};
    }
  }
  return Done{};
}

Status check_training(const Workload& workload) {
  if (workload.task != PlanTask::Train) return Done{};
  const auto& training = workload.training;
  if (training.zero_stage > 3) {
    return invalid("a ZeRO stage is 0 to 3: {}", training.zero_stage);
  }
  if (training.data_parallel == 0 || training.microbatches == 0) {
    return invalid("data parallel ranks and micro-batches in flight are 1 or more: {} and {}",
                   training.data_parallel, training.microbatches);
  }
  return Done{};
}

Status check_tensor_parallel(const ModelDescription& model, std::uint32_t t) {
  if (t == 0) return invalid("a tensor parallel degree is 1 or more: {}", t);
  for (std::size_t i = 0; i < model.shape.layers.size(); ++i) {
    const auto& layer = model.shape.layers[i];
    if (layer.head_count % t != 0) {
      return invalid("a tensor parallel degree must divide the {} attention heads of layer {}: {}",
                     layer.head_count, i, t);
    }
    const auto kv_heads = layer.kv_head_count;
    const bool has_even_shares = layer.attention == AttentionKind::Latent || kv_heads == 0 ||
                                 std::max(kv_heads, t) % std::min(kv_heads, t) == 0;
    if (!has_even_shares) {
      return invalid(
          "a tensor parallel degree must divide the {} KV heads of layer {} or be a multiple of "
          "them: {}",
          kv_heads, i, t);
    }
  }
  return Done{};
}

Status check_encoder(const MemoryDemand& demand) {
  if (!demand.is_engine_encoder) return Done{};
  if (!demand.is_gpu && demand.workload.dtype == "fp16") {
    return Error{ErrorKind::Unsupported, "a CPU computes encoders in fp32, bf16 or int8: fp16"};
  }
  if (demand.is_gpu && demand.workload.dtype == kInt8) {
    return Error{ErrorKind::Unsupported, "a GPU computes encoders in fp32, bf16 or fp16: int8"};
  }
  if (demand.tensor_parallel > 1) {
    return Error{
        ErrorKind::Unsupported,
        fmt::format("encoders are copied to devices, not cut over them: {}", demand.model.name)};
  }
  return Done{};
}

Result<std::uint64_t> resolve_context(const ModelDescription& model, const Workload& workload) {
  const auto& shape = model.shape;
  const std::uint64_t context = workload.context > 0 ? workload.context : usual_context(model);
  if (context == 0) {
    return Error{ErrorKind::InvalidArgument,
                 "the model states no longest context, so the workload must name one"};
  }
  if (shape.length_max > 0 && context > shape.length_max) {
    return invalid("the context is beyond the {} tokens that the model allows: {}",
                   shape.length_max, context);
  }
  if (workload.prefill_tokens > context) {
    return invalid("the tokens of one prefill step are more than the context of {}: {}", context,
                   workload.prefill_tokens);
  }
  return context;
}

// The numbers that the engine keeps weights in on a CPU; nullopt: it does not compute this there,
// and the parts are those of the plain block. It computes a model as a whole, on one device.
std::optional<DecoderPrecision> cpu_decoder_precision(const MemoryDemand& demand) {
  const auto& model = demand.model;
  const bool may_be = demand.workload.task == PlanTask::Generate && !demand.is_gpu &&
                      demand.tensor_parallel == 1 && model.decoder &&
                      is_cpu_decoder(*model.decoder);
  if (!may_be) return std::nullopt;
  auto precision = DecoderPrecision::Own;
  if (const auto& dtype = demand.workload.dtype; dtype == kInt8) {
    precision = DecoderPrecision::Int8;
  } else if (dtype) {
    const bool is_bf16 = dtype->starts_with('b') || dtype->starts_with('B');
    if (demand.weight_element_bytes != 4U && !is_bf16) return std::nullopt;
    precision = is_bf16 ? DecoderPrecision::Bf16 : DecoderPrecision::Fp32;
  }
  const bool are_multiplied =
      std::all_of(model.units.begin(), model.units.end(), [&](const ModelUnit& unit) {
        return cpu_decoder_weights(model, unit, precision).has_value();
      });
  if (!are_multiplied) return std::nullopt;
  return precision;
}

Status resolve_dtypes(MemoryDemand& demand) {
  const auto& workload = demand.workload;
  const bool is_int8 = workload.dtype == kInt8;
  demand.is_int8_encoder = demand.is_engine_encoder && is_int8;
  if (workload.dtype && !is_int8) {
    demand.weight_element_bytes = float_bytes(*workload.dtype);
    if (!demand.weight_element_bytes) {
      return invalid("weights are loaded as fp32, bf16 or fp16: {}", *workload.dtype);
    }
  }
  demand.element_bytes = activation_bytes(demand.model, workload);
  // The engine takes fp32 or what is quicker and near enough: the most is counted.
  if (demand.is_engine_encoder) demand.element_bytes = demand.weight_element_bytes.value_or(4);
  if (workload.task == PlanTask::Train) {
    demand.element_bytes = workload.training.precision == TrainingPrecision::Fp32 ? 4 : 2;
    if (demand.weight_element_bytes && *demand.weight_element_bytes != demand.element_bytes) {
      return invalid("the training precision keeps weights in {} bytes, which {} contradicts",
                     demand.element_bytes, *workload.dtype);
    }
  }
  demand.cpu_decoder = cpu_decoder_precision(demand);
  if (is_int8 && !demand.is_int8_encoder && !demand.cpu_decoder) {
    return Error{
        ErrorKind::Unsupported,
        "int8 is planned on CPUs alone, for encoders and decoders that this build computes "
        "there; others as fp32, bf16 or fp16: " +
            demand.model.name};
  }
  demand.cache_format = {1, demand.cpu_decoder ? cpu_decoder_cache_element(*demand.cpu_decoder)
                                               : demand.element_bytes};
  if (workload.kv_dtype != "auto") {
    const auto format = find_cache_format(workload.kv_dtype);
    if (!format) {
      return invalid(
          "a cache is auto, fp32, fp16, bf16, int8, fp8, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl: "
          "{}",
          workload.kv_dtype);
    }
    demand.cache_format = *format;
  }
  return Done{};
}

}  // namespace

Result<MemoryDemand> resolve_demand(const ModelDescription& model, const Workload& workload,
                                    const MemoryPlace& place) {
  MUSTER_TRY(check_task(model, workload));
  MUSTER_TRY(check_training(workload));
  MUSTER_TRY(check_tensor_parallel(model, place.tensor_parallel));
  if (workload.batch == 0) return invalid("a batch has 1 or more sequences: {}", workload.batch);
  if (workload.kv_block == 0) {
    return invalid("a block of a paged cache has 1 or more tokens: {}", workload.kv_block);
  }
  MemoryDemand demand{model, workload};
  demand.tensor_parallel = place.tensor_parallel;
  demand.lanes = std::max<std::uint32_t>(1, place.lanes);
  demand.is_gpu = place.is_gpu;
  demand.is_engine_encoder = workload.task == PlanTask::Embed && is_engine_encoder(model.shape);
  MUSTER_TRY(check_encoder(demand));
  demand.context = MUSTER_TRY(resolve_context(model, workload));
  const bool is_chunked = workload.task == PlanTask::Generate && workload.prefill_tokens > 0;
  demand.step_tokens = is_chunked ? workload.prefill_tokens : demand.context;
  MUSTER_TRY(resolve_dtypes(demand));
  return demand;
}

}  // namespace muster
