#include "cli/deploy_model.h"

#include "modelfile/model_folder.h"
#include "modelfile/safetensors.h"

namespace muster {

Result<std::optional<ModelFacts>> read_model_facts(const std::string& model) {
  const auto folder = find_model(model);
  if (!folder) return std::optional<ModelFacts>();
  const auto weights = MUSTER_TRY(ModelWeights::open(*folder));
  ModelFacts facts;
  for (const auto& [name, tensor] : weights.tensors()) facts.weight_bytes += tensor.data.size();
  return std::optional(facts);
}

std::vector<DeviceCandidate> device_candidates(const Inventory& inventory) {
  std::vector<DeviceCandidate> candidates;
  for (const auto& gpu : inventory.gpus) {
    candidates.push_back({gpu.name(), gpu.memory_total_bytes.value_or(0)});
  }
  return candidates;
}

}  // namespace muster
