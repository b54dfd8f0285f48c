#include "containers/container_model.h"

#include <numeric>

#include "modelfile/model_description.h"

namespace muster {

Result<ModelFacts> read_model_facts(const std::string& model) {
  const auto source = MUSTER_TRY(find_model_source(model));
  const auto description = MUSTER_TRY(describe_model(source));
  ModelFacts facts;
  facts.weight_bytes = description.stored_bytes();
  facts.heads.layer_count = static_cast<std::uint32_t>(description.shape.layers.size());
  // A count that divides the heads of every layer divides their greatest common divisor.
  for (const auto& layer : description.shape.layers) {
    facts.heads.head_count = std::gcd(facts.heads.head_count, layer.head_count);
    facts.heads.kv_head_count = std::gcd(facts.heads.kv_head_count, layer.kv_head_count);
  }
  return facts;
}

bool is_model_unknown(const Error& error) {
  return error.kind == ErrorKind::NotFound || error.kind == ErrorKind::Unsupported;
}

}  // namespace muster
