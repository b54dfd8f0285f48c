// A roofline by unit: what has to be multiplied and what has to be read, whichever takes longer,
// plus the exchange of the ranks. It leaves out kernel launches and imperfect overlap, so times
// come out short: they serve to compare plans rather than to promise a speed. A backward pass costs
// twice the forward one, hence the factor 3 of training. Memory comes already divided by rank,
// while flops are divided here. Sources are in the header.

#include "planner/parallel/parallel_times.h"

#include <algorithm>

#include "base/check.h"
#include "planner/memory/memory_dtype.h"

namespace muster {
namespace {

constexpr double kRingBaseSeconds = 3.6e-6;
constexpr double kRingHopSeconds = 0.5e-6;

struct Tokens {
  double computed = 0.0;      // over all sequences
  double logits = 0.0;        // rows of the head
  double keys = 0.0;          // that a token can attend to
  bool has_triangle = false;  // on average it attends to half of them
};

double context_of(const ModelShape& shape, const Workload& workload) {
  return workload.context > 0 ? workload.context : shape.length_max;
}

Tokens tokens_of(const ModelShape& shape, const Workload& workload, StepKind step) {
  const double batch = workload.batch;
  const double context = context_of(shape, workload);
  if (step == StepKind::Decode) return {batch, batch, context, false};
  const double prompt =
      step == StepKind::Prefill && workload.prefill_tokens > 0 ? workload.prefill_tokens : context;
  const bool has_all_logits = step == StepKind::Train || workload.all_logits;
  return {batch * prompt, has_all_logits ? batch * prompt : batch, prompt,
          shape.kind != ModelKind::Encoder};
}

// Elements of the matrices of attention.
double attention_elements(const LayerShape& layer, double hidden) {
  const double heads = layer.head_count;
  const double out = heads * (layer.value_head_size > 0 ? layer.value_head_size : layer.head_size);
  if (layer.attention == AttentionKind::Latent) {
    const double plain = layer.head_size > layer.rope_size ? layer.head_size - layer.rope_size : 0;
    return hidden * heads * layer.head_size + hidden * (layer.latent_size + layer.rope_size) +
           layer.latent_size * (heads * plain + out) + out * hidden;
  }
  const double values = layer.value_head_size > 0 ? layer.value_head_size : layer.head_size;
  const double own =
      hidden * (heads * layer.head_size + layer.kv_head_count * (layer.head_size + values)) +
      out * hidden;
  return layer.has_cross_attention ? 2.0 * own : own;
}

// Of the feed-forward part: all experts, and those that a token uses.
struct FeedForward {
  double all = 0.0;
  double used = 0.0;
};

FeedForward feed_forward(const LayerShape& layer, double hidden) {
  const double one = (layer.is_gated ? 3.0 : 2.0) * hidden * layer.intermediate_size;
  if (layer.expert_count == 0) return {one, one};
  return {one * (layer.expert_count + layer.shared_expert_count),
          one * (layer.experts_per_token + layer.shared_expert_count)};
}

double attention_flops(const LayerShape& layer, const Tokens& tokens) {
  if (layer.attention == AttentionKind::Recurrent)
    return 4.0 * tokens.computed * static_cast<double>(layer.state_elements);
  double keys = tokens.has_triangle && !layer.is_encoder ? tokens.keys / 2.0 : tokens.keys;
  if (layer.attention == AttentionKind::SlidingWindow && layer.window > 0) {
    keys = std::min<double>(keys, layer.window);
  }
  const double values = layer.value_head_size > 0 ? layer.value_head_size : layer.head_size;
  return 2.0 * tokens.computed * keys * layer.head_count * (layer.head_size + values);
}

// The share of a layer's weights that a step reads: of a mixture the experts that are chosen.
double read_share(const LayerShape& layer, double hidden, double tokens) {
  if (layer.expert_count == 0) return 1.0;
  const auto forward = feed_forward(layer, hidden);
  const double attention = attention_elements(layer, hidden);
  const double one = forward.all / (layer.expert_count + layer.shared_expert_count);
  const double routed = std::min<double>(layer.expert_count, tokens * layer.experts_per_token);
  const double read = attention + one * (layer.shared_expert_count + routed);
  return read / (attention + forward.all);
}

UnitWork block_work(const ModelDescription& model, const LayerShape& layer, const Tokens& tokens,
                    const UnitMemory& memory) {
  const double hidden = model.shape.hidden_size;
  const double elements = attention_elements(layer, hidden) + feed_forward(layer, hidden).used;
  UnitWork work;
  work.flops = 2.0 * elements * tokens.computed + attention_flops(layer, tokens);
  work.bytes = static_cast<double>(memory.weights) * read_share(layer, hidden, tokens.computed) +
               static_cast<double>(memory.kv_cache);
  return work;
}

}  // namespace

StepKind usual_step(const Workload& workload) {
  switch (workload.task) {
    case PlanTask::Embed:
      return StepKind::Prefill;
    case PlanTask::Generate:
      return StepKind::Decode;
    case PlanTask::Train:
      return StepKind::Train;
  }
  return StepKind::Prefill;
}

std::vector<UnitWork> unit_work(const ModelDescription& model, const Workload& workload,
                                std::span<const UnitMemory> memory, StepKind step,
                                std::uint32_t tensor_parallel) {
  MUSTER_CHECK(memory.size() == model.units.size());
  const auto& shape = model.shape;
  const auto tokens = tokens_of(shape, workload, step);
  const double hidden = shape.hidden_size;
  const double element = activation_bytes(model, workload);
  const double passes = step == StepKind::Train ? 3.0 : 1.0;
  std::vector<UnitWork> all;
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    const auto& unit = model.units[u];
    UnitWork work;
    switch (unit.kind) {
      case UnitKind::Embedding:  // rows are looked up
        work.bytes = tokens.computed * hidden * element / tensor_parallel;
        break;
      case UnitKind::Block:
        // `memory` is of one device already.
        work = block_work(model, shape.layers[unit.layer], tokens, memory[u]);
        work.flops /= tensor_parallel;
        if (tensor_parallel > 1) work.exchanged_bytes = 2.0 * tokens.computed * hidden * element;
        break;
      case UnitKind::Head:
        work.bytes = static_cast<double>(memory[u].weights);
        if (shape.has_head) {
          work.flops = 2.0 * tokens.logits * hidden * shape.vocab_size / tensor_parallel;
          if (shape.has_tied_head) {
            work.bytes += hidden * shape.vocab_size * element / tensor_parallel;
          }
        }
        break;
    }
    work.flops *= passes;
    work.bytes *= passes;
    work.exchanged_bytes *= step == StepKind::Train ? 2.0 : 1.0;
    all.push_back(work);
  }
  return all;
}

std::optional<double> unit_seconds(const UnitWork& work, const DeviceClass& device_class,
                                   std::uint32_t tensor_parallel, double group_bytes_per_second) {
  if (!device_class.flops_per_second || !device_class.memory_bytes_per_second) return std::nullopt;
  double seconds = std::max(work.flops / *device_class.flops_per_second,
                            work.bytes / *device_class.memory_bytes_per_second);
  if (tensor_parallel > 1 && work.exchanged_bytes > 0.0) {
    // Two sums of half of it each.
    seconds += 2.0 * all_reduce_seconds(work.exchanged_bytes / 2.0, tensor_parallel,
                                        group_bytes_per_second);
  }
  return seconds;
}

double all_reduce_seconds(double bytes, std::uint32_t count, double bytes_per_second) {
  if (count < 2) return 0.0;
  const double others = count - 1;
  return kRingBaseSeconds + 2.0 * others * kRingHopSeconds +
         2.0 * others / count * bytes / bytes_per_second;
}

double cut_seconds(const ModelDescription& model, const Workload& workload, StepKind step,
                   double bytes_per_second) {
  const auto tokens = tokens_of(model.shape, workload, step);
  const double bytes =
      tokens.computed * model.shape.hidden_size * activation_bytes(model, workload);
  const double directions = step == StepKind::Train ? 2.0 : 1.0;
  return directions * (kRingHopSeconds + bytes / bytes_per_second);
}

}  // namespace muster
