#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoder/decoder_weights.h"
#include "engine/decoder/gated_product.h"
#include "engine/decoder/row_forms.h"
#include "engine/ops/counted_array.h"
#include "engine/ops/decoder_kernels.h"
#include "engine/ops/thread_team.h"
#include "spec/decoder_spec.h"

namespace muster::engine {

/// An expert that a row goes through, and what its result is multiplied by.
struct ExpertChoice {
  std::uint32_t expert = 0;
  float weight = 0;
};

/// The experts of one row: those with the largest of the router's logits [experts], largest first,
/// of equal ones the lower index (torch.topk leaves open which). There are as many as `chosen` has,
/// at most as many as logits.
///
///   weight = exp(logit) / sum of exp(logit) over the chosen
///
/// which is the softmax over all experts, divided by the sum of it over the chosen. All weights are
/// NaN where a logit is not finite: what a damaged router chooses must not look like a choice.
/// Source: transformers 5.17, modeling_mixtral.py, MixtralTopKRouter.forward.
void choose_experts(std::span<const float> logits, std::span<ExpertChoice> chosen);

/// The feed-forward part of layers with experts, over the rows of a step:
///
///   hidden += sum over the chosen e of weight_e down_e(activation(gate_e(x)) up_e(x))
///
/// summed onto `hidden` in ascending order of e, whatever their rank. Expert by expert, the rows
/// that have chosen it are put side by side, multiplied, and added where they came from. Neither
/// that order nor a product depends on which other rows there are: a row gets the same bits in any
/// company.
///
/// Threads: owned by one; it shares work out over the team.
class FeedForwardExperts {
 public:
  /// Makes room for a step of `row_count_max` rows. All layers have experts.
  FeedForwardExperts(const DecoderSpec& spec, const std::vector<DecoderLayer>& layers,
                     ThreadTeam& team, std::size_t row_count_max);

  /// Shapes: x [rows, hidden], of which float32 is read; hidden [rows, hidden].
  void add(const DecoderLayer& layer, const RowBuffer& x, std::size_t row_count, float* hidden);

 private:
  /// A row that has chosen an expert.
  struct ChosenRow {
    std::size_t row = 0;
    float weight = 0;
  };

  void route(const DecoderLayer& layer, const RowBuffer& x, std::size_t row_count);
  void add_expert(const ExpertOf<PanelMatrix>& expert, std::span<const ChosenRow> rows,
                  const RowBuffer& x, float* hidden);

  const DecoderSpec& spec_;
  ThreadTeam& team_;
  const DecoderKernels& kernels_;
  CountedArray<float> logits_;                // [rows, experts]
  std::vector<ExpertChoice> choices_;         // [rows, experts a token]
  std::vector<std::vector<ChosenRow>> rows_;  // [experts]: who has chosen each, ascending
  // Of one expert at a time.
  GatedProduct gated_product_;
  RowBuffer gathered_;        // [rows, hidden]
  RowBuffer gated_;           // [rows, intermediate]
  CountedArray<float> part_;  // [rows, hidden]
};

}  // namespace muster::engine
