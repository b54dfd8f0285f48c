// Experts of a feed-forward part, one after the other over the rows that have chosen them.

#include "engine/decoder/feed_forward_experts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/decoder/row_sharing.h"

namespace muster::engine {

void choose_experts(std::span<const float> logits, std::span<ExpertChoice> chosen) {
  MUSTER_CHECK(chosen.size() <= logits.size());
  const bool is_finite =
      std::all_of(logits.begin(), logits.end(), [](float logit) { return std::isfinite(logit); });
  if (!is_finite) {
    for (std::uint32_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = {i, std::numeric_limits<float>::quiet_NaN()};
    }
    return;
  }
  const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  const auto count = static_cast<std::uint32_t>(logits.size());
  float sum = 0;
  for (std::size_t rank = 0; rank < chosen.size(); ++rank) {
    std::uint32_t best = count;
    for (std::uint32_t expert = 0; expert < count; ++expert) {
      if (rank > 0 && !is_before(chosen[rank - 1].expert, expert)) continue;
      if (best == count || is_before(expert, best)) best = expert;
    }
    chosen[rank].expert = best;
    chosen[rank].weight = std::exp(logits[best] - logits[chosen[0].expert]);
    sum += chosen[rank].weight;
  }
  for (auto& choice : chosen) choice.weight /= sum;
}

FeedForwardExperts::FeedForwardExperts(const DecoderSpec& spec,
                                       const std::vector<DecoderLayer>& layers, ThreadTeam& team,
                                       std::size_t row_count_max)
    : spec_(spec),
      team_(team),
      kernels_(best_decoder_kernels()),
      logits_(row_count_max * spec.expert_count),
      choices_(row_count_max * spec.experts_per_token),
      rows_(spec.expert_count),
      gated_product_(spec, team, row_count_max),
      part_(row_count_max * spec.hidden_size) {
  RowForms into_up;
  RowForms into_down;
  for (const auto& layer : layers) {
    for (const auto& expert : layer.experts) {
      into_up = into_up | expert.up.forms();
      into_down = into_down | expert.down.forms();
    }
  }
  gathered_ = RowBuffer(row_count_max, spec.hidden_size, into_up);
  gated_ = RowBuffer(row_count_max, spec.intermediate_size, into_down);
}

void FeedForwardExperts::add(const DecoderLayer& layer, const RowBuffer& x, std::size_t row_count,
                             float* hidden) {
  route(layer, x, row_count);
  for (std::size_t expert = 0; expert < rows_.size(); ++expert) {
    if (!rows_[expert].empty()) add_expert(layer.experts[expert], rows_[expert], x, hidden);
  }
}

void FeedForwardExperts::route(const DecoderLayer& layer, const RowBuffer& x,
                               std::size_t row_count) {
  const std::size_t expert_count = spec_.expert_count;
  const std::size_t chosen_count = spec_.experts_per_token;
  layer.router.multiply(kernels_, team_, x, row_count, {logits_.get(), expert_count, false});
  share_rows(team_, row_count, [&](std::size_t row, std::size_t) {
    choose_experts({logits_.get() + row * expert_count, expert_count},
                   std::span(choices_).subspan(row * chosen_count, chosen_count));
  });
  for (auto& rows : rows_) rows.clear();
  for (std::size_t i = 0; i < row_count * chosen_count; ++i) {
    rows_[choices_[i].expert].push_back({i / chosen_count, choices_[i].weight});
  }
}

// A row is rounded or cut into blocks again for each of its experts, which is little beside their
// products.
void FeedForwardExperts::add_expert(const ExpertOf<PanelMatrix>& expert,
                                    std::span<const ChosenRow> rows, const RowBuffer& x,
                                    float* hidden) {
  const std::size_t hidden_size = spec_.hidden_size;
  share_rows(team_, rows.size(), [&](std::size_t i, std::size_t) {
    gathered_.put(kernels_, {.row = i, .count = hidden_size}, x.rows(rows[i].row, 1).fp32);
  });
  gated_product_.run(expert.up, gathered_, rows.size(), gated_);
  expert.down.multiply(kernels_, team_, gated_, rows.size(), {part_.get(), hidden_size, false});
  share_rows(team_, rows.size(), [&](std::size_t i, std::size_t) {
    float* part = part_.get() + i * hidden_size;
    for (std::size_t k = 0; k < hidden_size; ++k) part[k] *= rows[i].weight;
    kernels_.add(hidden_size, part, hidden + rows[i].row * hidden_size);
  });
}

}  // namespace muster::engine
