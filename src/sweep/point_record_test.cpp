#include "sweep/point_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sweep/device_stats.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;
using K = SweepKey;

// Ten requests of ten tokens each, a tenth of a second apart; each takes 50 ms and brings 4 tokens.
BenchTrial trial_of(double latency = 0.05) {
  BenchTrial trial;
  trial.started_at = 1'700'000'000;  // 2023-11-14T22:13:20Z
  for (int i = 0; i < 10; ++i) {
    const double begin = 0.1 * i;
    trial.samples.samples.push_back({.intended = begin,
                                     .ready = begin,
                                     .started = begin,
                                     .sent = begin,
                                     .first_byte = begin + latency / 2,
                                     .end = begin + latency,
                                     .status = 200,
                                     .outcome = SampleEnd::Answered,
                                     .input_tokens = 10,
                                     .output_tokens = 4});
  }
  trial.samples.sending_seconds = 1;
  trial.summary =
      summarize_trial(trial.samples, {.is_open_loop = true, .warm_up = {.seconds = 0.0}});
  return trial;
}

BenchResult result_of(std::vector<BenchTrial> trials) {
  BenchResult result;
  result.server = "test";
  result.environment.build = "0.1.0 (abc)";
  result.points.push_back({.load = "1 client", .trials = std::move(trials)});
  return result;
}

SweepPoint point_of(const std::string& text, const std::string& task = "generate") {
  const auto config = SweepConfig::read(text, "b.yaml", {});
  EXPECT_TRUE(config) << config.error().message;
  return sweep_points(*config, {.task = task})->front();
}

DeviceSample sample_of(double utilization, double memory_bytes, double watts) {
  DeviceSample sample;
  sample.readings.set(Reading::GpuUtilization, utilization);
  sample.readings.set(Reading::GpuMemoryUsed, memory_bytes);
  sample.readings.set(Reading::GpuPowerInstant, watts);
  return sample;
}

PointDevice gpu_of(std::uint32_t index, double joules) {
  PointDevice gpu;
  gpu.identity.device = {.kind = DeviceKind::Cuda,
                         .index = index,
                         .model = "GPU",
                         .uuid = "GPU-" + std::to_string(index),
                         .memory_total_bytes = 16ULL << 30};
  gpu.name = "cuda:" + std::to_string(index);
  gpu.is_own = true;
  gpu.use.add(sample_of(0.5, 1 << 30, 100));
  gpu.use.add(sample_of(0.9, 3ULL << 30, 300));
  gpu.energy = {.joules = joules, .method = "counter", .error_joules = 1};
  return gpu;
}

PointDevice cpu_of(std::optional<double> joules) {
  PointDevice cpu;
  cpu.identity.device = {.kind = DeviceKind::Cpu, .model = "CPU"};
  cpu.name = "cpu:0";
  cpu.energy.joules = joules;
  cpu.energy.method = joules ? "counter" : "";
  cpu.energy.missing_reason = joules ? "" : "it has no energy counter that can be read";
  return cpu;
}

PointReport report_of(const SweepPoint& point, const BenchResult& result,
                      std::vector<TrialTelemetry> telemetry) {
  return {.point = &point,
          .task = "generate",
          .availability = {{"cuda:0"}, {"cuda:0"}, {}, {}},
          .result = &result,
          .telemetry = std::move(telemetry),
          .unwatched_reason = "metrics.enabled is false",
          .invalid_reasons = {}};
}

const std::string kFile = "backend: {model: m, device_ids: [0, 1]}\nscenario: {num_samples: 10}\n";
const std::string kOneGpu = "backend: {model: m, device_ids: [0]}\nscenario: {num_samples: 10}\n";

TEST(PointRecord, HasTheNamesOfDocumentOne) {
  const auto point = point_of(kFile);
  const auto result = result_of({trial_of()});
  const auto record = point_record(report_of(
      point, result,
      {{.devices = {gpu_of(0, 36), gpu_of(1, 72), cpu_of(std::nullopt)}, .is_exclusive = true}}));
  EXPECT_EQ(record["point"], point.id);
  EXPECT_EQ(record["timestamp"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(record["valid"], true);
  EXPECT_EQ(record["config"]["device_ids"], (Json{0, 1}));
  EXPECT_EQ(record["config"]["num_samples"], 10);
  EXPECT_EQ(record["config"]["truncation"], nullptr);
  EXPECT_EQ(record["availability"]["all_available"], true);
  const auto& summary = record["summary"];
  EXPECT_EQ(summary["total_prompts"], 10);
  EXPECT_EQ(summary["successful_prompts"], 10);
  EXPECT_EQ(summary["failed_prompts"], 0);
  EXPECT_DOUBLE_EQ(summary["total_duration_seconds"], 1);
  EXPECT_NEAR(summary["avg_latency_seconds"].get<double>(), 0.05, 1e-9);
  EXPECT_EQ(summary["total_tokens"], 140);
  EXPECT_EQ(summary["total_completion_tokens"], 40);
  EXPECT_DOUBLE_EQ(summary["throughput_tokens_per_second"], 140);
  EXPECT_DOUBLE_EQ(summary["throughput_prompts_per_second"], 10);
  EXPECT_EQ(summary["p99_latency_seconds"], nullptr) << "ten samples have none";
  const auto& gpu = record["gpu_stats"]["gpu_0"];
  EXPECT_DOUBLE_EQ(gpu["utilization_percent"], 70);
  EXPECT_DOUBLE_EQ(gpu["utilization_percent_min"], 50);
  EXPECT_DOUBLE_EQ(gpu["utilization_percent_max"], 90);
  EXPECT_DOUBLE_EQ(gpu["memory_used_mb"], 2048);
  EXPECT_DOUBLE_EQ(gpu["memory_total_mb"], 16384);
  EXPECT_DOUBLE_EQ(gpu["memory_percent"], 12.5);
  EXPECT_DOUBLE_EQ(gpu["power_draw_w"], 200);
  EXPECT_EQ(gpu["temperature_c"], nullptr);
  EXPECT_FALSE(record["gpu_stats"].contains("cpu_0"));
  EXPECT_EQ(record["gpu_stats"].size(), 2U);
}

// A trial may be over before a reading is taken: nothing stands in its place but the reason.
TEST(PointRecord, SaysWhichReadingsNeverCame) {
  const auto point = point_of(kFile);
  const auto result = result_of({trial_of()});
  auto cpu = cpu_of(std::nullopt);
  const auto early = point_record(report_of(point, result, {{.devices = {gpu_of(0, 1), cpu}}}));
  EXPECT_EQ(early["cpu_stats"]["utilization_percent"], nullptr);
  EXPECT_EQ(early["cpu_stats"]["missing_reason"],
            "no reading came in the 1.000 s of its requests: utilization_percent");
  EXPECT_EQ(early["gpu_stats"]["gpu_0"]["missing_reason"],
            "no reading came in the 1.000 s of its requests: temperature_c");
  DeviceSample sample;
  sample.readings.set(Reading::CpuUtilization, 0.25);
  cpu.use.add(sample);
  const auto late = point_record(report_of(point, result, {{.devices = {cpu}}}))["cpu_stats"];
  EXPECT_DOUBLE_EQ(late["utilization_percent"], 25);
  EXPECT_EQ(late["missing_reason"], nullptr);
  const auto unwatched = point_record(report_of(point, result, {}))["cpu_stats"];
  EXPECT_EQ(unwatched["utilization_percent"], nullptr);
  EXPECT_EQ(unwatched["missing_reason"], "metrics.enabled is false");
}

TEST(PointRecord, CountsTheJoulesOfTheWindowOfTheRequests) {
  const auto point = point_of(kFile);
  const auto result = result_of({trial_of(), trial_of()});
  const TrialTelemetry one{.devices = {gpu_of(0, 36), gpu_of(1, 36), cpu_of(18)},
                           .is_exclusive = true};
  const auto energy = point_record(report_of(point, result, {one, one}))["energy"];
  // 2 trials x 2 GPUs x 36 J, for 20 prompts of 4 tokens each.
  EXPECT_DOUBLE_EQ(energy["joules"], 144);
  EXPECT_DOUBLE_EQ(energy["error_joules"], 4);
  EXPECT_EQ(energy["method"], "counter");
  EXPECT_EQ(energy["missing_reason"], nullptr);
  EXPECT_EQ(energy["exclusive"], true);
  EXPECT_DOUBLE_EQ(energy["joules_per_prompt"], 7.2);
  EXPECT_DOUBLE_EQ(energy["joules_per_output_token"], 1.8);
  EXPECT_DOUBLE_EQ(energy["energy_wh"], 0.04);
  EXPECT_DOUBLE_EQ(energy["gpu_energy_wh"], 0.04);
  EXPECT_DOUBLE_EQ(energy["cpu_energy_wh"], 0.01);
  EXPECT_DOUBLE_EQ(energy["total_energy_wh"], 0.05);
  EXPECT_EQ(energy["ram_energy_wh"], nullptr);
  EXPECT_DOUBLE_EQ(energy["duration_seconds"], 2);
  EXPECT_EQ(energy["emissions_g_co2eq"], nullptr);
  EXPECT_EQ(energy["emissions_missing_reason"], "metrics.carbon_intensity_g_per_kwh is not stated");
}

TEST(PointRecord, SaysThatSomebodyElseWasThereInOneTrial) {
  const auto point = point_of(kFile);
  const auto result = result_of({trial_of(), trial_of()});
  const auto exclusive = [&](std::optional<bool> first, std::optional<bool> second) {
    const TrialTelemetry one{.devices = {gpu_of(0, 1)}, .is_exclusive = first};
    const TrialTelemetry two{.devices = {gpu_of(0, 1)}, .is_exclusive = second};
    return record_value(point_record(report_of(point, result, {one, two})), "energy", "exclusive");
  };
  EXPECT_EQ(exclusive(true, true), true);
  EXPECT_EQ(exclusive(true, std::nullopt), nullptr);
  EXPECT_EQ(exclusive(std::nullopt, false), false);
}

TEST(PointRecord, HasNoJoulesWhereThereIsNoCounter) {
  const auto point = point_of("backend: {model: m, device: cpu}\nscenario: {num_samples: 10}\n");
  const auto result = result_of({trial_of()});
  auto cpu = cpu_of(std::nullopt);
  cpu.is_own = true;
  const auto energy = point_record(report_of(point, result, {{.devices = {cpu}}}))["energy"];
  EXPECT_EQ(energy["joules"], nullptr);
  EXPECT_EQ(energy["missing_reason"], "cpu:0: it has no energy counter that can be read");
  EXPECT_EQ(energy["joules_per_prompt"], nullptr);
  EXPECT_EQ(energy["total_energy_wh"], nullptr);
  EXPECT_EQ(energy["exclusive"], nullptr);
  const auto unwatched = point_record(report_of(point, result, {}))["energy"];
  EXPECT_EQ(unwatched["missing_reason"], "metrics.enabled is false");
}

// Of one trial the counters' edges were not found: its joules are not those of the other.
TEST(PointRecord, HasNoJoulesWhereATrialWasNotWatched) {
  const auto point = point_of(kFile);
  const auto result = result_of({trial_of(), trial_of()});
  const TrialTelemetry one{.devices = {gpu_of(0, 36), gpu_of(1, 36), cpu_of(18)}};
  const TrialTelemetry none{.devices = {}, .missing_reason = "the sampler does not answer"};
  const auto record = point_record(report_of(point, result, {one, none}));
  EXPECT_EQ(record["valid"], true) << "its times were measured";
  EXPECT_EQ(record["energy"]["joules"], nullptr);
  EXPECT_EQ(record["energy"]["missing_reason"], "the sampler does not answer");
  EXPECT_EQ(record["energy"]["total_energy_wh"], nullptr);
  EXPECT_EQ(record["cpu_stats"]["missing_reason"], "the sampler does not answer");
}

// On a busy machine an edge of the counter may be missed in one trial.
TEST(PointRecord, SaysWhyEnergyWasIntegrated) {
  const auto point = point_of(kOneGpu);
  const auto result = result_of({trial_of(), trial_of()});
  auto integrated = gpu_of(0, 36);
  integrated.energy.method = "integrated";
  integrated.energy.counter_missing_reason = "no edge in 250 ms";
  const auto energy_of = [&](const PointDevice& first, const PointDevice& second) {
    return point_record(
        report_of(point, result, {{.devices = {first}}, {.devices = {second}}}))["energy"];
  };
  const auto all = energy_of(integrated, integrated);
  EXPECT_EQ(all["method"], "integrated");
  EXPECT_EQ(all["missing_reason"], nullptr);
  EXPECT_EQ(all["counter_missing_reason"], "cuda:0: no edge in 250 ms");
  const auto one = energy_of(gpu_of(0, 36), integrated);
  EXPECT_EQ(one["method"], "mixed");
  EXPECT_EQ(one["counter_missing_reason"], "cuda:0: no edge in 250 ms");
  EXPECT_EQ(energy_of(gpu_of(0, 36), gpu_of(0, 36))["counter_missing_reason"], nullptr);
}

// One of its two GPUs is not there for who watches, or was lost before the second trial.
TEST(PointRecord, HasNoJoulesOfAPartOfItsDevices) {
  const auto point = point_of(kFile);
  const auto one = result_of({trial_of()});
  const auto energy =
      point_record(report_of(point, one, {{.devices = {gpu_of(0, 36), cpu_of(18)}}}))["energy"];
  EXPECT_EQ(energy["joules"], nullptr);
  EXPECT_EQ(energy["missing_reason"], "cuda:1 was not watched");
  EXPECT_EQ(energy["gpu_energy_wh"], nullptr);
  EXPECT_DOUBLE_EQ(energy["cpu_energy_wh"], 0.005);
  EXPECT_EQ(energy["total_energy_wh"], nullptr);
  const auto two = result_of({trial_of(), trial_of()});
  const auto lost = point_record(report_of(
      point, two,
      {{.devices = {gpu_of(0, 36), gpu_of(1, 36)}}, {.devices = {gpu_of(0, 36)}}}))["energy"];
  EXPECT_EQ(lost["joules"], nullptr);
  EXPECT_EQ(lost["missing_reason"], "cuda:1 was not watched");
  // The CPUs beside a GPU are watched as what they are.
  const auto mixed =
      point_of("backend: {model: m, device_ids: [0, 1xcpu]}\nscenario: {num_samples: 10}\n");
  auto cpu = cpu_of(18);
  cpu.is_own = true;
  EXPECT_DOUBLE_EQ(
      point_record(report_of(mixed, one, {{.devices = {gpu_of(0, 36), cpu}}}))["energy"]["joules"],
      54);
}

TEST(PointRecord, TellsGramsOfAStatedIntensity) {
  const auto point = point_of(kOneGpu +
                              "metrics: {carbon_intensity_g_per_kwh: 500, "
                              "carbon_intensity_source: \"a report\", region: north}\n");
  const auto result = result_of({trial_of()});
  const auto energy =
      point_record(report_of(point, result, {{.devices = {gpu_of(0, 3.6e6)}}}))["energy"];
  EXPECT_DOUBLE_EQ(energy["energy_kwh"], 1);
  EXPECT_DOUBLE_EQ(energy["emissions_g_co2eq"], 500);
  EXPECT_EQ(energy["carbon_intensity_source"], "a report");
  EXPECT_EQ(energy["region"], "north");
}

// A request of an embedding has several texts, and each is a prompt.
TEST(PointRecord, CountsTextsAndNotRequests) {
  const auto point = point_of(
      "backend: {model: m}\nscenario: {num_samples: 80, input_shapes: {batch_size: 8}}\n", "embed");
  const auto result = result_of({trial_of()});
  auto report = report_of(point, result, {});
  report.task = "embed";
  const auto summary = point_record(report)["summary"];
  EXPECT_EQ(summary["total_requests"], 10);
  EXPECT_EQ(summary["total_prompts"], 80);
  EXPECT_DOUBLE_EQ(summary["throughput_prompts_per_second"], 80);
}

// A server that does not count its prompts: they are not none.
TEST(PointRecord, CountsNoTokensThatTheServerDoesNotSay) {
  const auto point = point_of(kOneGpu);
  auto result = result_of({trial_of()});
  for (auto& sample : result.points[0].trials[0].samples.samples) {
    sample.input_tokens = -1;
    sample.output_tokens = -1;
    sample.token_events = 3;
  }
  const auto record = point_record(report_of(point, result, {{.devices = {gpu_of(0, 60)}}}));
  const auto& summary = record["summary"];
  EXPECT_EQ(summary["total_prompt_tokens"], nullptr);
  EXPECT_EQ(summary["total_tokens"], nullptr);
  EXPECT_EQ(summary["throughput_tokens_per_second"], nullptr);
  EXPECT_EQ(summary["total_completion_tokens"], 30) << "pieces of the streams";
  EXPECT_DOUBLE_EQ(record["energy"]["joules_per_output_token"], 2);
  EXPECT_EQ(record["energy"]["tokens_per_joule"], nullptr);
}

// A vector has no tokens of its own: none is said, and the prompts' are known.
TEST(PointRecord, KnowsThePromptsOfAnEncoderAlone) {
  const auto point = point_of("backend: {model: m, device_ids: [0]}\n", "embed");
  auto result = result_of({trial_of()});
  for (auto& sample : result.points[0].trials[0].samples.samples) sample.output_tokens = -1;
  const auto& trial = result.points[0].trials[0].samples;
  result.points[0].trials[0].summary = summarize_trial(trial, {.warm_up = {.seconds = 0.0}});
  auto report = report_of(point, result, {{.devices = {gpu_of(0, 50)}}});
  report.task = "embed";
  const auto record = point_record(report);
  EXPECT_EQ(record["summary"]["total_tokens"], 100);
  EXPECT_EQ(record["summary"]["total_completion_tokens"], nullptr);
  EXPECT_EQ(record["summary"]["token_source"], "usage");
  EXPECT_DOUBLE_EQ(record["energy"]["tokens_per_joule"], 2);
  result.points[0].trials[0].samples.samples.clear();
  EXPECT_EQ(point_record(report)["summary"]["total_tokens"], nullptr) << "nothing was answered";
}

TEST(PointRecord, SaysWhyItIsNotValid) {
  const auto point = point_of(kFile);
  auto result = result_of({trial_of()});
  auto report = report_of(point, result, {});
  report.invalid_reasons = {"cuda:0 held 21 GB, and max_memory allows 20 GB"};
  EXPECT_EQ(point_record(report)["valid"], false);
  result.points[0].trials[0].summary.generator.is_in_time = false;
  EXPECT_EQ(point_record(report)["invalid_reasons"],
            (Json{"the load generator was late: the machine was too busy",
                  "cuda:0 held 21 GB, and max_memory allows 20 GB"}));
}

TEST(PointRecord, SaysWhatTheServerWasToldBesideTheFile) {
  const auto point = point_of(kFile);
  const auto result = result_of({trial_of()});
  auto report = report_of(point, result, {});
  EXPECT_EQ(point_record(report)["backend_info"]["settings"], nullptr);
  EXPECT_EQ(point_record(report)["backend_info"]["precision"], nullptr);
  report.precision = "bf16";
  report.settings = "--batch-tokens=512";
  EXPECT_EQ(point_record(report)["backend_info"]["precision"], "bf16");
  EXPECT_EQ(point_record(report)["backend_info"]["settings"], "--batch-tokens=512");
}

TEST(PointRecord, SaysWhetherItsObjectivesAreMet) {
  const auto point = point_of(kFile);
  auto result = result_of({trial_of()});
  const auto met = [&] {
    return record_value(point_record(report_of(point, result, {})), "summary", "objectives_met");
  };
  EXPECT_EQ(met(), nullptr) << "none was set";
  result.points[0].objectives = {{.is_met = true}, {.is_met = true}};
  EXPECT_EQ(met(), true);
  result.points[0].objectives[1].is_met = false;
  EXPECT_EQ(met(), nullptr) << "one is not known";
  result.points[0].objectives[1].value = 0.5;
  EXPECT_EQ(met(), false);
  EXPECT_EQ(record_value({{"summary", 3}}, "summary", "a"), nullptr);
  EXPECT_EQ(record_value({}, "summary", "a"), nullptr);
}

TEST(PointRecord, HasEveryKeyAlways) {
  const auto point = point_of(kFile);
  const auto result = result_of({trial_of()});
  const auto with = point_record(report_of(point, result, {{.devices = {gpu_of(0, 1)}}}));
  const auto without = point_record(report_of(point, result, {}));
  for (const auto* part : {"config", "availability", "summary", "energy", "cpu_stats"}) {
    std::vector<std::string> keys;
    for (const auto& item : with[part].items()) keys.push_back(item.key());
    std::vector<std::string> others;
    for (const auto& item : without[part].items()) others.push_back(item.key());
    EXPECT_EQ(keys, others) << part;
  }
  std::vector<std::string> keys;
  for (const auto& item : with["gpu_stats"]["gpu_0"].items()) keys.push_back(item.key());
  EXPECT_EQ(keys, gpu_stat_keys());
}

}  // namespace
}  // namespace muster
