// One point: its command is read by the parser of the command line and run by what runs that
// command, with the devices watched around each trial. What it showed becomes the record that the
// point's file and the table have.
#include "cli/sweep/point_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "bench/result/result_json.h"
#include "cli/arguments.h"
#include "cli/bench_measurement.h"
#include "cli/sweep/point_meter.h"
#include "net/http_client.h"
#include "sweep/lost_server.h"
#include "sweep/point_words.h"

namespace muster {
namespace {

using K = SweepKey;

// "--rate must be …" of a value that stands in a file is "bench.yaml:9: scenario.rate must be …".
Error at_place(const SweepConfig& config, const Error& error) {
  const auto flag = error.message.substr(0, error.message.find_first_of(" :="));
  const auto key = key_of_flag(flag);
  if (!key) return error;
  return {error.kind, config.place_of(*key) + error.message.substr(flag.size())};
}

std::string unwatched_reason(const SweepPoint& point) {
  if (point.at(K::MetricsEnabled) == "false") return "metrics.enabled is false";
  if (!point.has(K::DeviceIds)) {
    return "backend.device_ids names no device of this machine to watch";
  }
  return {};
}

// What watches a point, from the moment at which its server is ready.
class PointWatch {
 public:
  PointWatch(const CommandContext& context, const SweepConfig& config, const PointOrder& order)
      : context_(context), config_(config), order_(order) {}

  BenchHooks hooks() {
    BenchHooks hooks;
    hooks.on_ready = [this](const BenchServer& server) { return start(server); };
    hooks.on_trial_begin = [this] { return meter_ ? meter_->begin_trial() : Done{}; };
    hooks.on_trial_end = [this] { return meter_ ? meter_->end_trial() : Done{}; };
    hooks.on_measured = [this](const BenchServer& server, const BenchResult& result) {
      return finish(server, result);
    };
    return hooks;
  }

  std::vector<TrialTelemetry> telemetry() const {
    return meter_ ? meter_->telemetry() : std::vector<TrialTelemetry>();
  }
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  Status start(const BenchServer& server) {
    const auto& point = *order_.point;
    if (!unwatched_reason(point).empty()) return Done{};
    PointMeter::Options options{.own_devices = split(point.at(K::DeviceIds), ',')};
    if (server.own) options.own_processes = [&server] { return server.own->processes(); };
    if (const auto folder = config_.text(K::MetricsOutputDir)) {
      std::error_code fault;
      std::filesystem::create_directories(*folder, fault);
      if (fault) return system_error(*folder, "make", fault.value());
      options.recording = std::filesystem::path(*folder) / (point.id + ".jsonl");
    }
    meter_ = MUSTER_TRY(PointMeter::start(context_.config, context_.clock, std::move(options)));
    return Done{};
  }

  Status finish(const BenchServer& server, const BenchResult& result) {
    if (meter_) MUSTER_TRY(meter_->finish());
    if (const auto lost = lost_server(result)) {
      return Error{ErrorKind::Unavailable, "the server was lost meanwhile: " + *lost};
    }
    if (order_.limits.empty() || !server.own) return Done{};
    const auto client = MUSTER_TRY(HttpClient::open(server.own->url()));
    const auto answer = MUSTER_TRY(client->call("GET", "/v1/devices"));
    faults_ = memory_faults(order_.limits, held_memory(answer.body));
    return Done{};
  }

  const CommandContext& context_;
  const SweepConfig& config_;
  const PointOrder& order_;
  std::unique_ptr<PointMeter> meter_;
  std::vector<std::string> faults_;
};

}  // namespace

Result<PointCommand> point_command(const CommandContext& context, const SweepConfig& config,
                                   const SweepPoint& point, std::string_view task) {
  auto words = point_words(point, task);
  const auto behind = std::vector<std::string>(words.begin() + 1, words.end());
  words.insert(words.begin(), context.words.front());
  const auto arguments = parse_arguments(bench_spec(), behind);
  if (!arguments) return at_place(config, arguments.error());
  auto sources = context.sources;
  sources.flags = arguments->settings;
  auto settings = Config::load(sources);
  if (!settings) return at_place(config, settings.error());
  const auto kind = MUSTER_TRY(bench_task(*arguments));
  auto plan = bench_plan(*arguments, kind);
  if (!plan) return at_place(config, plan.error());
  return PointCommand{.words = std::move(words),
                      .arguments = *arguments,
                      .sources = std::move(sources),
                      .config = std::move(*settings),
                      .plan = std::move(*plan)};
}

Result<MeasuredPoint> measure_point(const CommandContext& context, const SweepConfig& config,
                                    const PointOrder& order) {
  auto command = MUSTER_TRY(point_command(context, config, *order.point, order.task));
  const CommandContext own{.arguments = command.arguments,
                           .config = command.config,
                           .clock = context.clock,
                           .output = context.output,
                           .words = command.words,
                           .sources = command.sources,
                           .color = context.color};
  PointWatch watch(own, config, order);
  auto result = MUSTER_TRY(measure(own, command.plan, watch.hooks()));
  const auto record = point_record({.point = order.point,
                                    .task = order.task,
                                    .availability = order.availability,
                                    .result = &result,
                                    .telemetry = watch.telemetry(),
                                    .unwatched_reason = unwatched_reason(*order.point),
                                    .invalid_reasons = watch.faults()});
  result.run = record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return MeasuredPoint{
      .json = result_json(result),
      .kept = {
          .id = order.point->id, .is_valid = record.at("valid").get<bool>(), .record = record}};
}

}  // namespace muster
