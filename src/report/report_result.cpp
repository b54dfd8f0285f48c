// What is drawn of a sample is its time and how it ended; the other columns are passed over while
// the file is parsed, because a million samples would take a gigabyte otherwise.
#include "report/report_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr double kNumberMost = 1e15;
constexpr double kNanoseconds = 1e9;
constexpr double kSecondsMost = 1e9;  // of a sample: thirty years

struct TimesName {
  const char* key;
  const char* title;
  const char* figure;
};
// Source: docs/formats/bench-result.md; the titles are those of the terminal.
constexpr std::array kTimes{
    TimesName{"latency", "latency", "latency"}, TimesName{"service", "service", "service"},
    TimesName{"first_token", "first token", "ttft"},
    TimesName{"token_gap", "between pieces", "itl"}, TimesName{"per_token", "per token", "tpot"}};

const Json& nothing() {
  static const Json kNone;
  return kNone;
}

const Json& member(const Json& json, const std::string& key) {
  if (!json.is_object()) return nothing();
  const auto found = json.find(key);
  return found == json.end() ? nothing() : *found;
}

// A member that has members: a number would have itself as one.
const Json& object_of(const Json& json, const std::string& key) {
  const auto& value = member(json, key);
  return value.is_object() ? value : nothing();
}

std::optional<double> number_in(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::abs(number) <= kNumberMost ? std::optional(number) : std::nullopt;
}

std::optional<double> number_of(const Json& json, const std::string& key) {
  return number_in(member(json, key));
}

std::optional<std::uint64_t> count_of(const Json& json, const std::string& key) {
  const auto& value = member(json, key);
  return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

std::optional<bool> truth_of(const Json& json, const std::string& key) {
  const auto& value = member(json, key);
  return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

std::string text_of(const Json& json, const std::string& key) {
  const auto& value = member(json, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::vector<std::string> texts_of(const Json& json, const std::string& key) {
  std::vector<std::string> texts;
  const auto& values = member(json, key);
  if (!values.is_array()) return texts;
  for (const auto& value : values) {
    if (value.is_string()) texts.push_back(value.get<std::string>());
  }
  return texts;
}

// A value of any kind in one line; empty for what is not known.
std::string plain_text(const Json& value) {
  if (value.is_null() || value.is_discarded()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  for (const auto& one : value) {
    text += text.empty() ? "" : ",";
    text += one.is_string() ? one.get<std::string>()
                            : one.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return text;
}

std::optional<Estimate> estimate_of(const Json& json, const std::string& value_key) {
  const auto value = number_of(json, value_key);
  if (!value) return std::nullopt;
  return Estimate{.value = *value, .low = number_of(json, "low"), .high = number_of(json, "high")};
}

std::string percentile_key(double share) {
  constexpr double kPerCent = 100;
  auto key = fmt::format("p{:g}", share * kPerCent);
  std::erase(key, '.');  // p999
  return key;
}

std::optional<Distribution> distribution_of(const Json& json) {
  const auto mean = estimate_of(member(json, "mean"), "value");
  const auto least = number_of(json, "min");
  const auto most = number_of(json, "max");
  if (!mean || !least || !most) return std::nullopt;
  Distribution distribution{
      .count = count_of(json, "count").value_or(0), .mean = *mean, .least = *least, .most = *most};
  for (const double share : shown_percentiles()) {
    distribution.percentiles.push_back(
        {.share = share,
         .estimate = estimate_of(member(json, percentile_key(share)), "value"),
         .effective_count = 0});
  }
  return distribution;
}

std::vector<DrawnSample> samples_of(const Json& json) {
  std::vector<DrawnSample> samples;
  const auto& at = member(json, "intended_ns");
  const auto& latency = member(json, "latency_ns");
  const auto& outcome = member(json, "outcome");
  if (!at.is_array() || !latency.is_array() || !outcome.is_array()) return samples;
  const auto count = std::min({at.size(), latency.size(), outcome.size()});
  samples.reserve(count);
  const auto seconds_in = [](const Json& value) -> std::optional<double> {
    if (!value.is_number()) return std::nullopt;
    const double seconds = value.get<double>() / kNanoseconds;
    return seconds >= 0 && seconds <= kSecondsMost ? std::optional(seconds) : std::nullopt;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = seconds_in(at[i]);
    if (!begin) continue;
    const auto& end = outcome[i];
    samples.push_back(
        {.at = *begin,
         .latency = seconds_in(latency[i]),
         .is_answered = end.is_string() && end.get_ref<const std::string&>() == "answered"});
  }
  if (!std::ranges::is_sorted(samples, {}, &DrawnSample::at)) {
    std::ranges::stable_sort(samples, {}, &DrawnSample::at);
  }
  return samples;
}

std::optional<TimeParts> parts_of(const Json& json) {
  const auto wait = number_of(json, "connection_wait");
  const auto lag = number_of(json, "lag");
  const auto sending = number_of(json, "sending");
  const auto first_byte = number_of(json, "first_byte_wait");
  const auto receiving = number_of(json, "receiving");
  if (!wait || !lag || !sending || !first_byte || !receiving) return std::nullopt;
  return TimeParts{.connection_wait = *wait,
                   .lag = *lag,
                   .sending = *sending,
                   .first_byte_wait = *first_byte,
                   .receiving = *receiving};
}

void add_counts(const Json& json, ReportTrial& trial) {
  const auto& requests = member(json, "requests");
  trial.warm_up_sent = count_of(requests, "warm_up");
  trial.sent = count_of(requests, "sent");
  trial.answered = count_of(requests, "answered");
  trial.missed_at_end = count_of(requests, "missed_at_end").value_or(0);
  for (const auto& [outcome, count] : object_of(requests, "failed").items()) {
    if (count.is_number_unsigned()) trial.failed.emplace_back(outcome, count.get<std::uint64_t>());
  }
  const auto& rates = member(json, "per_second");
  trial.offered_per_second = number_of(rates, "offered");
  trial.sent_per_second = number_of(rates, "sent");
  trial.answered_per_second = number_of(rates, "answered");
  const auto& tokens = member(json, "tokens");
  trial.input_tokens = count_of(tokens, "input");
  trial.output_tokens = count_of(tokens, "output");
  trial.input_tokens_per_second = number_of(tokens, "input_per_second");
  trial.output_tokens_per_second = number_of(tokens, "output_per_second");
  trial.token_source = text_of(tokens, "output_source");
}

ReportTrial trial_of(const Json& json) {
  ReportTrial trial{.started_at = number_of(json, "started_at"),
                    .is_valid = truth_of(json, "valid").value_or(false)};
  const auto& generator = member(json, "generator");
  trial.lateness = text_of(generator, "measure");
  trial.lateness_p99 = number_of(generator, "p99");
  trial.lateness_limit = number_of(generator, "limit");
  trial.warm_up_seconds = std::max(number_of(json, "warm_up_seconds").value_or(0), 0.0);
  trial.counted_seconds = std::max(number_of(json, "counted_seconds").value_or(0), 0.0);
  trial.is_steady = truth_of(json, "steady");
  trial.drift = number_of(json, "drift");
  trial.has_kept_up = truth_of(json, "kept_up").value_or(true);
  add_counts(json, trial);
  for (const auto& name : kTimes) {
    auto distribution = distribution_of(member(json, name.key));
    if (!distribution) continue;
    trial.times.push_back(
        {.title = name.title, .figure = name.figure, .distribution = std::move(*distribution)});
  }
  trial.parts = parts_of(member(json, "parts"));
  for (const auto& [name, value] : object_of(json, "server_stages").items()) {
    if (const auto seconds = number_in(value)) trial.stages.push_back({name, *seconds});
  }
  const auto& doubts = member(json, "server_stage_doubts");
  trial.stage_doubts = {.too_long = count_of(doubts, "too_long").value_or(0),
                        .left_out = count_of(doubts, "left_out").value_or(0)};
  const auto& machine = member(json, "machine");
  trial.others_share = number_of(machine, "others_share");
  trial.stolen_share = number_of(machine, "stolen_share");
  trial.problems = texts_of(json, "problems");
  for (const auto& [name, value] : object_of(json, "figures").items()) {
    if (const auto number = number_in(value)) trial.figures[name] = *number;
  }
  trial.samples = samples_of(member(json, "samples"));
  return trial;
}

ReportLoad load_of_point(const Json& json) {
  ReportLoad load{.name = text_of(json, "load")};
  for (const auto& trial : member(json, "trials")) load.trials.push_back(trial_of(trial));
  const auto& objectives = member(json, "objectives");
  if (objectives.is_array()) {
    for (const auto& one : objectives) {
      load.objectives.push_back({.text = text_of(one, "objective"),
                                 .value = number_of(one, "value"),
                                 .is_met = truth_of(one, "met").value_or(false),
                                 .why_unknown = text_of(one, "why_unknown")});
    }
  }
  for (const auto& [name, value] : object_of(json, "over_trials").items()) {
    if (const auto estimate = estimate_of(value, "mean")) load.over_trials[name] = *estimate;
  }
  return load;
}

void add_values(const Json& json, std::map<std::string, double, std::less<>>& numbers,
                std::map<std::string, std::string, std::less<>>& words) {
  for (const auto& [name, value] : json.items()) {
    if (const auto number = number_in(value)) numbers[name] = *number;
    if (value.is_string() || value.is_boolean()) words[name] = plain_text(value);
  }
}

ReportRecord record_of(const Json& run) {
  ReportRecord record{.point = text_of(run, "point")};
  for (const auto& [name, value] : object_of(run, "config").items()) {
    auto text = plain_text(value);
    if (!text.empty()) record.config[name] = std::move(text);
  }
  std::map<std::string, std::string, std::less<>> ignored;
  add_values(object_of(run, "summary"), record.summary, ignored);
  add_values(object_of(run, "energy"), record.energy, record.energy_words);
  const auto add_device = [&record](const std::string& name, const Json& json) {
    if (!json.is_object()) return;
    ReportRecord::Device device{.name = name};
    add_values(json, device.numbers, device.words);
    record.devices.push_back(std::move(device));
  };
  add_device("cpu", member(run, "cpu_stats"));
  for (const auto& [name, gpu] : object_of(run, "gpu_stats").items()) add_device(name, gpu);
  return record;
}

std::optional<PeakResult> peak_of(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  return PeakResult{.rate = number_of(json, "rate"),
                    .missed = number_of(json, "missed"),
                    .unknown = number_of(json, "unknown")};
}

// Of the columns of samples those that are drawn. Stages of a server may have any name and lie as
// deep; what lies within `samples` alone is passed over.
class ColumnFilter {
 public:
  bool keeps(int depth, const Json& key) {
    constexpr int kTrialKeys = 5;  // {points: [{trials: [{…
    constexpr int kColumns = 6;
    if (depth == kTrialKeys) is_in_samples_ = key == "samples";
    if (depth != kColumns || !is_in_samples_) return true;
    return key == "intended_ns" || key == "latency_ns" || key == "outcome";
  }

 private:
  bool is_in_samples_ = false;
};

}  // namespace

Result<ReportResult> read_report_result(std::string_view json, std::string_view name) {
  ReportResult result{.name = std::string(name)};
  result.figures = MUSTER_TRY(read_result_figures(json, name));
  ColumnFilter filter;
  const auto keep = [&filter](int depth, Json::parse_event_t event, const Json& parsed) {
    return event != Json::parse_event_t::key || filter.keeps(depth, parsed);
  };
  const auto parsed = Json::parse(json, keep, /*allow_exceptions=*/false);
  const auto& target = member(parsed, "target");
  result.api = text_of(target, "api");
  result.url = text_of(target, "url");
  result.model = text_of(target, "model");
  result.server = text_of(target, "server");
  result.build = text_of(member(parsed, "tool"), "build");
  result.command = texts_of(parsed, "command");
  for (const auto& [key, value] : object_of(parsed, "environment").items()) {
    auto text = plain_text(value);
    if (!text.empty()) result.environment.emplace_back(key, std::move(text));
  }
  result.peak = peak_of(member(parsed, "peak"));
  for (const auto& point : member(parsed, "points")) result.loads.push_back(load_of_point(point));
  const auto& run = member(parsed, "run");
  if (run.is_object()) result.record = record_of(run);
  return result;
}

}  // namespace muster
