// One point: its command is read by the parser of the command line and run by what runs that
// command, with the devices watched around each trial. What it showed becomes the record that the
// point's file and the table have.
#include "cli/sweep/point_run.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "bench/result/result_json.h"
#include "cli/arguments.h"
#include "cli/bench_measurement.h"
#include "cli/server_client.h"
#include "cli/sweep/point_meter.h"
#include "cli/sweep/server_account.h"
#include "net/http_client.h"
#include "sweep/lost_server.h"
#include "sweep/point_words.h"

namespace muster {
namespace {

using K = SweepKey;

constexpr auto kSignOfLife = std::chrono::seconds(5);  // within which a server answers anything

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
    hooks.on_trial_begin = [this] {
      if (meter_) meter_->begin_trial();
      return Done{};
    };
    hooks.on_trial_end = [this] {
      if (meter_) meter_->end_trial();
      return Done{};
    };
    hooks.on_measured = [this](const BenchServer& server, const BenchResult& result) {
      return finish(server, result);
    };
    return hooks;
  }

  std::vector<TrialTelemetry> telemetry() const {
    return meter_ ? meter_->telemetry() : std::vector<TrialTelemetry>();
  }
  const std::vector<std::string>& faults() const { return faults_; }
  const std::optional<std::string>& precision() const { return precision_; }

 private:
  Status start(const BenchServer& server) {
    const auto& point = *order_.point;
    if (!unwatched_reason(point).empty()) return Done{};
    PointMeter::Options options{.own_devices = split(point.at(K::DeviceIds), ',')};
    if (server.own) options.own_processes = [&server] { return server.own->processes(); };
    if (const auto folder = config_.text(K::MetricsOutputDir)) {
      options.recording = std::filesystem::path(*folder) / (point.id + ".jsonl");
    }
    meter_ = MUSTER_TRY(PointMeter::start(context_.config, context_.clock, std::move(options)));
    return Done{};
  }

  Status finish(const BenchServer& server, const BenchResult& result) {
    if (meter_) tell_recording(meter_->finish());
    // One of our own has ended or answers below.
    const auto answers = [&] { return server.own != nullptr || gives_sign_of_life(config_); };
    if (const auto lost = lost_server(result, answers)) {
      return Error{ErrorKind::Unavailable, "the server was lost meanwhile: " + *lost};
    }
    if (!server.own) return Done{};
    const auto client = MUSTER_TRY(HttpClient::open(server.own->url()));
    const auto models = MUSTER_TRY(client->call("GET", "/v1/models"));
    const auto devices = MUSTER_TRY(client->call("GET", "/v1/devices"));
    auto account = read_server_account(models.body, devices.body);
    precision_ = std::move(account.precision);
    faults_ = std::move(account.faults);
    for (auto& fault : memory_faults(order_.limits, account.held)) {
      faults_.push_back(std::move(fault));
    }
    return Done{};
  }

  // The requests, readings and joules of the point are whole all the same, and took minutes.
  static void tell_recording(const std::string& fault) {
    if (fault.empty()) return;
    say_bench_step(fmt::format("the point is kept, and its recording is not whole: {}", fault));
  }

  const CommandContext& context_;
  const SweepConfig& config_;
  const PointOrder& order_;
  std::unique_ptr<PointMeter> meter_;
  std::vector<std::string> faults_;
  std::optional<std::string> precision_;
};

// The words and settings of a point where there were those of the run.
CommandContext own_context(const CommandContext& context, PointCommand& command) {
  return {.arguments = command.arguments,
          .config = command.config,
          .clock = context.clock,
          .output = context.output,
          .words = command.words,
          .sources = command.sources,
          .color = context.color};
}

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
  if (plan->points.size() != 1) {
    return invalid_error(fmt::format("{} is one rate; a sweep of rates is a list, as [10, 20]",
                                     config.place_of(K::Rate)));
  }
  return PointCommand{.words = std::move(words),
                      .arguments = *arguments,
                      .sources = std::move(sources),
                      .config = std::move(*settings),
                      .plan = std::move(*plan)};
}

Status check_point_files(const CommandContext& context, const SweepConfig& config,
                         PointCommand command) {
  const auto at = [&config](K key, const Error& error) {
    return Error{error.kind, fmt::format("{}: {}", config.place_of(key), error.message)};
  };
  if (config.is_remote()) {
    const auto url = parse_http_url(command.plan.subject);
    if (!url) return at(K::Url, url.error());
  }
  if (command.plan.tokenizer) {
    const auto counter = token_counter(*command.plan.tokenizer);
    if (!counter) return at(K::Tokenizer, counter.error());
  }
  if (!config.is_given(K::ApiKeyFile)) return Done{};
  const auto access = server_access(own_context(context, command));
  return access ? Status(Done{}) : at(K::ApiKeyFile, access.error());
}

Result<std::string> find_served_model(const CommandContext& context, const SweepConfig& config,
                                      PointCommand command) {
  const auto own = own_context(context, command);
  const auto find = [&]() -> Result<std::string> {
    const auto server = MUSTER_TRY(open_bench_server(own, command.plan));
    return first_listed_model(own, server, command.plan.points.front().load.answer_limit_seconds,
                              {.model = "backend.model", .timeout = "scenario.timeout"});
  };
  auto model = find();
  if (model) return model;
  return Error{model.error().kind,
               fmt::format("{}: {}", config.place_of(K::Url), model.error().message)};
}

// Twice: one that takes a request at a time may have been busy with a last one.
bool gives_sign_of_life(const SweepConfig& config) {
  const auto answers = [&config] {
    const auto client = HttpClient::open(config.text(K::Url).value_or(""),
                                         HttpClientOptions{.answer_limit = kSignOfLife});
    return client && (*client)->call("GET", "/models");
  };
  return answers() || answers();
}

Result<MeasuredPoint> measure_point(const CommandContext& context, const SweepConfig& config,
                                    const PointOrder& order) {
  auto command = MUSTER_TRY(point_command(context, config, *order.point, order.task));
  const auto own = own_context(context, command);
  PointWatch watch(own, config, order);
  auto result = MUSTER_TRY(measure(own, command.plan, watch.hooks()));
  const auto record = point_record({.point = order.point,
                                    .task = order.task,
                                    .availability = order.availability,
                                    .result = &result,
                                    .telemetry = watch.telemetry(),
                                    .unwatched_reason = unwatched_reason(*order.point),
                                    .precision = watch.precision(),
                                    .settings = order.settings,
                                    .invalid_reasons = watch.faults()});
  result.run = record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return MeasuredPoint{
      .json = result_json(result),
      .kept = {
          .id = order.point->id, .is_valid = record.at("valid").get<bool>(), .record = record}};
}

}  // namespace muster
