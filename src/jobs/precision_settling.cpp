// The order of answers: what was asked for, what an earlier run measured, a measurement now. A
// measurement that cannot be kept is still used; it costs the next run the same again. So does one
// that another device has made: the next run asks for that of its own first one.

#include "jobs/precision_settling.h"

#include <fmt/format.h>

#include <vector>

#include "spec/pooling.h"

namespace muster {
namespace {

Probe probe_of(OpenedModel& model) {
  Probe probe;
  probe.model = model_request(model);
  std::vector<TokenId> ids;
  for (const auto text : precision_texts()) {
    model.text_encoder->encode(text, ids);
    probe.lengths.push_back(static_cast<std::uint32_t>(ids.size()));
    probe.ids.insert(probe.ids.end(), ids.begin(), ids.end());
  }
  return probe;
}

}  // namespace

Result<PrecisionChoice> settle_precision(const PrecisionQuestion& question, OpenedModel& model,
                                         const MeasurePrecisions& measure,
                                         const std::function<void(const std::string&)>& on_notice) {
  if (question.asked) return PrecisionChoice{.precision = *question.asked, .reason = "asked for"};
  VerdictKey key{.model_hash = model.hash,
                 .processor = question.processor,
                 .engine_class = question.engine_class,
                 .pooling = std::string(pooling_name(model.pooling))};
  if (const auto kept = read_cached_verdict(question.cache_folder, key)) {
    auto choice = choose_precision(*kept);
    choice.reason += " (kept from an earlier run)";
    return choice;
  }
  on_notice("measuring which precision is fastest here (once for this model and processor)");
  const auto measured = MUSTER_TRY(measure(probe_of(model)));
  key.processor = measured.processor;
  key.engine_class = measured.engine_class;
  const auto kept = write_cached_verdict(question.cache_folder, key, measured.verdict);
  if (!kept) on_notice(fmt::format("the measurement cannot be kept: {}", kept.error().message));
  return choose_precision(measured.verdict);
}

}  // namespace muster
