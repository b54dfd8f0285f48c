// Measures each precision on the texts that the parent sends. The precisions take turns round by
// round, so a clock that changes meanwhile affects all alike; the first round only warms up, and
// the median of the others counts. Accuracy is the cosine to the float32 rows, which come first in
// the list. A precision that cannot be loaded is left out; float32 must load.

#include "worker/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "modelfile/model_folder.h"
#include "worker/row_closeness.h"

namespace muster {
namespace {

constexpr int kRounds = 7;  // odd, so that the median is one of them

struct Candidate {
  Precision precision;
  std::unique_ptr<engine::Encoder> encoder;
  std::vector<float> rows;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Status run_round(Candidate& candidate, const engine::TextBatch& batch, bool is_counted) {
  const auto begin = std::chrono::steady_clock::now();
  MUSTER_TRY(candidate.encoder->encode(batch, candidate.rows));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (is_counted) candidate.seconds.push_back(elapsed.count());
  return Done{};
}

PrecisionMeasure measure(const Candidate& candidate, const Candidate& reference,
                         std::size_t text_count, std::size_t token_count) {
  const auto closeness =
      row_closeness(candidate.rows, reference.rows, candidate.rows.size() / text_count);
  return {.precision = candidate.precision,
          .tokens_per_second = static_cast<double>(token_count) / median(candidate.seconds),
          .cosine_mean = closeness.mean,
          .cosine_min = closeness.min};
}

}  // namespace

Result<engine::EncoderOptions> encoder_options(const ModelRequest& model, Precision precision) {
  auto folder = MUSTER_TRY(read_model_folder(model.model_folder));
  if (model.task == ModelTask::Embed) {
    folder.rerank.reset();
  } else if (!folder.rerank) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: no cross-encoder: config.json's architectures name no "
                             "...ForSequenceClassification",
                             folder.path.string())};
  }
  return engine::EncoderOptions{.model_folder = folder.path,
                                .encoder = folder.encoder,
                                .pooling = model.pooling,
                                .normalize = model.normalize,
                                .precision = precision,
                                .device = model.device,
                                .rerank = folder.rerank};
}

Result<ProbeVerdict> measure_precisions(const Probe& probe) {
  const engine::TextBatch batch{.ids = probe.ids, .lengths = probe.lengths};
  std::vector<Candidate> candidates;
  for (const auto precision : engine::precisions_to_try(probe.model.device)) {
    auto encoder = engine::Encoder::load(MUSTER_TRY(encoder_options(probe.model, precision)));
    if (!encoder && candidates.empty()) return encoder.error();
    if (!encoder) continue;
    const auto size = std::size_t{(*encoder)->dim()} * probe.lengths.size();
    candidates.push_back({precision, *std::move(encoder), std::vector<float>(size), {}});
  }
  for (int round = 0; round <= kRounds; ++round) {
    for (auto& candidate : candidates) MUSTER_TRY(run_round(candidate, batch, round > 0));
  }
  ProbeVerdict verdict;
  for (const auto& candidate : candidates) {
    verdict.measures.push_back(
        measure(candidate, candidates.front(), probe.lengths.size(), probe.ids.size()));
  }
  return verdict;
}

}  // namespace muster
