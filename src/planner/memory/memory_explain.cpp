// The formulas, their sources and their error bounds as text, by part. They repeat in words what
// the other sources of this folder compute, so a change there needs one here; docs/memory-model.md
// has the derivations. Figures that no run of this program has confirmed yet are marked as
// provisional.

#include <string>
#include <vector>

#include "planner/memory/memory_encoder.h"
#include "planner/memory/memory_model.h"
#include "planner/memory/memory_unit.h"

namespace muster {
namespace {

constexpr const char* kProvisional = "provisional until generation runs";

bool has_layer(const ModelShape& shape, AttentionKind kind) {
  for (const auto& layer : shape.layers) {
    if (layer.attention == kind && !layer.is_encoder) return true;
  }
  return false;
}

PartExplanation weights_of(const ModelDescription& model, const Workload& workload) {
  if (workload.task == PlanTask::Train) {
    return {"weights", "elements x w / N (stage 3)", "ZeRO, arXiv 1910.02054, section 5",
            "exact but for the layout of the optimizer that will run"};
  }
  const bool is_from_config = model.weight_source == WeightSource::Config;
  return {"weights",
          workload.dtype ? "sum of elements x e, packed integers as stored" : "sum of stored bytes",
          is_from_config ? "config.json, as transformers creates the model"
                         : "the headers of the weight files",
          is_from_config ? "exact for unquantised weights" : "exact"};
}

PartExplanation cache_of(const ModelDescription& model) {
  std::string formula = "B x T x kv_heads x (d_k + d_v) x e a layer";
  if (has_layer(model.shape, AttentionKind::SlidingWindow)) formula += "; window: min(T, W)";
  if (has_layer(model.shape, AttentionKind::Latent)) formula += "; latent: B x T x (r + d_r) x e";
  if (has_layer(model.shape, AttentionKind::Recurrent)) formula += "; state: B x elements x e";
  return {"kv_cache", formula + "; T in whole blocks",
          "arXiv 2309.06180, section 3; 2310.06825, section 2; 2405.04434, section 2.1.2",
          std::string("exact in elements, ") + kProvisional};
}

void explain_training(const Workload& workload, std::vector<PartExplanation>& parts) {
  parts.push_back({"gradients", "elements x g / N (stages 2 and 3)",
                   "ZeRO, arXiv 1910.02054, sections 3.1 and 5", kProvisional});
  parts.push_back({"optimizer", "elements x o / N (stages 1 to 3)",
                   "ZeRO, arXiv 1910.02054, sections 3.1 and 5", kProvisional});
  parts.push_back({"activations",
                   workload.training.recompute
                       ? "M x B x s x h x e a layer, and one layer whole with its gradients"
                       : "M x B x s x (kept elements x e) a layer, and one layer's gradients",
                   "arXiv 2205.05198, section 4; docs/memory-model.md, Training", kProvisional});
  parts.push_back(
      {"logits", "2 x B x s x V / t x 4", "docs/memory-model.md, Training", kProvisional});
}

void explain_generation(const ModelDescription& model, const Workload& workload,
                        std::vector<PartExplanation>& parts) {
  parts.push_back(cache_of(model));
  parts.push_back({"activations", "max over units of the largest live set of one step",
                   "docs/memory-model.md, Activations", kProvisional});
  parts.push_back({"logits", workload.all_logits ? "B x S x V / t x 4" : "B x V / t x 4",
                   "docs/memory-model.md, Activations", kProvisional});
}

// As the engine's own account has it, array by array.
constexpr const char* kEngine = "docs/memory-model.md, Decoders on a CPU";
constexpr const char* kExact = "exact (against the engine's account)";

void explain_cpu_decoder(const Workload& workload, std::vector<PartExplanation>& parts) {
  const bool is_int8 = workload.kv_dtype == "int8";
  parts.front() = {"weights",
                   "matrices in panels of 16 outputs and their biases, norms, the file's tables",
                   kEngine, kExact};
  parts.push_back({"kv_cache",
                   is_int8 ? "B x T x kv_heads x 2 x (head size + 4) a layer; T in whole blocks"
                           : "B x T x kv_heads x 2 x head size x e a layer; T in whole blocks",
                   kEngine, kExact});
  parts.push_back({"activations",
                   "rows of a step of 512 tokens, and scratch of attention for each core", kEngine,
                   kExact});
  parts.push_back(
      {"logits", "rows x V x 4, for max(B, 32) sequences and 32 scored ids", kEngine, kExact});
}

constexpr const char* kMeasured =
    "CPU: <= 1 % (against the worker's counting allocator); GPU: not measured yet";

void explain_embedding(const ModelDescription& model, std::vector<PartExplanation>& parts) {
  if (!is_engine_encoder(model.shape)) {
    parts.push_back({"activations", "max over units of the largest live set of one step",
                     "docs/memory-model.md, Activations", kProvisional});
    return;
  }
  parts.front() = {"weights", "float32 tables, matrices packed in the precision of the run",
                   "docs/memory-model.md, Encoders", kMeasured};
  parts.push_back(
      {"activations",
       "the larger of loading, and lanes x the largest live set of a pass of 1,024 tokens",
       "docs/memory-model.md, Encoders", kMeasured});
}

}  // namespace

std::vector<PartExplanation> explain_memory(const ModelDescription& model, const Workload& workload,
                                            bool is_gpu) {
  std::vector<PartExplanation> parts{weights_of(model, workload)};
  const auto demand = resolve_demand(model, workload, {.is_gpu = is_gpu});
  switch (workload.task) {
    case PlanTask::Generate:
      if (demand && demand->cpu_decoder) {
        explain_cpu_decoder(workload, parts);
      } else {
        explain_generation(model, workload, parts);
      }
      break;
    case PlanTask::Train:
      explain_training(workload, parts);
      break;
    case PlanTask::Embed:
      explain_embedding(model, parts);
      break;
  }
  const bool is_encoder = workload.task == PlanTask::Embed;
  parts.push_back(
      {"workspace",
       is_encoder ? "3 x (32 MiB cuBLAS + 1 MiB cuBLASLt)" : "32 MiB cuBLAS + 1 MiB cuBLASLt",
       "torch 2.11, CublasHandlePool.cpp and CUDABlas.cpp",
       is_encoder ? "upper bound: less before Hopper; two lanes and the self-test"
                  : "upper bound: less before Hopper; one handle and stream"});
  parts.push_back({"context", "457 MiB", "ollama, discover/gpu.go, cudaMinimumMemory",
                   "a stated figure until calibrated on the machine"});
  return parts;
}

}  // namespace muster
