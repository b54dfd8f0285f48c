// Where the experts of a layer are: each in tensors of its own, or all of them on top of each
// other.

#include "engine/decoder/mixtral_experts.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "engine/decoder/family_blocks.h"

namespace muster::engine {
namespace {

using ExpertTensors = ExpertOf<DenseTensors>;

class ExpertsOfLayer {
 public:
  ExpertsOfLayer(const WeightLoading& loading, std::size_t layer, LayerTensors& to)
      : loading_(loading), layer_(layer), to_(to) {}

  // The router first: a file that has fewer experts than it says is found out before there is room
  // for them.
  Status find() {
    if (loading_.spec.naming == TensorNaming::Gguf) {
      MUSTER_TRY(find_router("ffn_gate_inp"));
      return loading_.source.has(name("ffn_gate.0.weight"))
                 ? find_single("ffn_gate.{}", "ffn_up.{}", "ffn_down.{}")
                 : find_stacked();
    }
    if (loading_.source.has(name("mlp.experts.gate_up_proj"))) {
      MUSTER_TRY(find_router("mlp.gate"));
      return find_merged();
    }
    MUSTER_TRY(find_router("block_sparse_moe.gate"));
    return find_single("block_sparse_moe.experts.{}.w1", "block_sparse_moe.experts.{}.w3",
                       "block_sparse_moe.experts.{}.w2");
  }

 private:
  std::string name(std::string_view part) const {
    return layer_name(loading_.spec, "model.layers.", layer_, part);
  }

  Status linear(std::string_view part, std::size_t rows, std::size_t columns,
                DenseTensors& to) const {
    return find_linear(loading_, {name(part), rows, columns}, to);
  }

  Status find_router(std::string_view part) {
    MUSTER_TRY(linear(part, loading_.spec.expert_count, hidden_, to_.router));
    to_.experts.resize(loading_.spec.expert_count);
    return Done{};
  }

  /// Names with the number of an expert in the place of "{}".
  Status find_single(std::string_view gate, std::string_view up, std::string_view down) {
    for (std::size_t i = 0; i < to_.experts.size(); ++i) {
      auto& expert = to_.experts[i];
      const auto of_expert = [i](std::string_view part) {
        return fmt::format(fmt::runtime(part), i);
      };
      MUSTER_TRY(linear(of_expert(gate), inner_, hidden_, expert.up));
      MUSTER_TRY(linear(of_expert(up), inner_, hidden_, expert.up));
      MUSTER_TRY(linear(of_expert(down), hidden_, inner_, expert.down));
    }
    return Done{};
  }

  Status find_stacked() {
    MUSTER_TRY(add_stack("ffn_gate_exps.weight", inner_, hidden_, &ExpertTensors::up));
    MUSTER_TRY(add_stack("ffn_up_exps.weight", inner_, hidden_, &ExpertTensors::up));
    return add_stack("ffn_down_exps.weight", hidden_, inner_, &ExpertTensors::down);
  }

  // Of each expert the rows of gate stand before those of up, as in a matrix of both.
  Status find_merged() {
    MUSTER_TRY(add_stack("mlp.experts.gate_up_proj", 2 * inner_, hidden_, &ExpertTensors::up));
    return add_stack("mlp.experts.down_proj", hidden_, inner_, &ExpertTensors::down);
  }

  Status add_stack(std::string_view tensor, std::size_t rows, std::size_t columns,
                   DenseTensors ExpertTensors::*to) {
    const auto matrices =
        MUSTER_TRY(loading_.source.stack(name(tensor), to_.experts.size(), rows, columns));
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      (to_.experts[i].*to).parts.push_back(DensePart{.matrix = matrices[i]});
    }
    return Done{};
  }

  const WeightLoading& loading_;
  const std::size_t layer_;
  LayerTensors& to_;
  const std::size_t hidden_ = loading_.spec.hidden_size;
  const std::size_t inner_ = loading_.spec.intermediate_size;
};

}  // namespace

Status find_mixtral_experts(const WeightLoading& loading, std::size_t layer, LayerTensors& to) {
  return ExpertsOfLayer(loading, layer, to).find();
}

}  // namespace muster::engine
