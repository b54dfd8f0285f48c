#include "report/report_fixture.h"

#include <utility>

namespace muster {

Distribution made_distribution(double p50) {
  Distribution made{.count = 500,
                    .mean = {.value = 1.5 * p50, .low = 1.4 * p50, .high = 1.6 * p50},
                    .least = 0.5 * p50,
                    .most = 9 * p50};
  double factor = 1;
  for (const double share : shown_percentiles()) {
    const double value = factor * p50;
    made.percentiles.push_back(
        {.share = share,
         .estimate = Estimate{.value = value, .low = 0.95 * value, .high = 1.05 * value},
         .effective_count = 0});
    factor += 1;
  }
  made.percentiles[3].estimate->high = std::nullopt;
  made.percentiles[4].estimate = std::nullopt;
  return made;
}

ReportTrial made_trial(std::size_t count, double latency) {
  ReportTrial made{.started_at = 1'700'000'000.0};
  made.lateness = "send lag";
  made.lateness_p99 = 0.0002;
  made.lateness_limit = 0.001;
  made.counted_seconds = static_cast<double>(count) / 100;
  made.is_steady = true;
  made.drift = 0.0;
  made.sent = count;
  made.answered = count;
  made.answered_per_second = 100.0;
  made.times = {
      {.title = "latency", .figure = "latency", .distribution = made_distribution(latency)}};
  made.figures = {{"throughput", 100.0}, {"error_rate", 0.0}};
  for (std::size_t i = 0; i < count; ++i) {
    made.samples.push_back(
        {.at = static_cast<double>(i) / 100, .latency = latency, .is_answered = true});
  }
  return made;
}

ReportResult made_result(const std::string& name, std::vector<ReportTrial> trials) {
  ReportResult made{.name = name};
  ReportLoad load{.name = "poisson 100/s", .trials = std::move(trials)};
  ResultFigures::Point point{.load = load.name, .trial_count = load.trials.size()};
  for (const auto& trial : load.trials) {
    point.is_valid = point.is_valid && trial.is_valid;
    for (const auto& [figure, value] : trial.figures) point.figures[figure].push_back(value);
  }
  made.figures.points.push_back(std::move(point));
  made.loads.push_back(std::move(load));
  return made;
}

ReportResult made_point(const std::string& name, const std::string& batch_size,
                        const std::string& dtype, double prompts_per_second) {
  auto made = made_result(name, {made_trial(40, 0.02)});
  ReportRecord record{.point = name};
  record.config = {{"batch_size", batch_size}, {"torch_dtype", dtype}, {"model", "m"}};
  record.summary = {{"throughput_prompts_per_second", prompts_per_second}};
  record.energy_words = {{"missing_reason", "metrics.enabled is false"}};
  made.record = std::move(record);
  made.is_compared = false;
  return made;
}

}  // namespace muster
