// A server from start to end, on one event loop. Members are declared in the order in which they
// depend on each other, so destruction takes them down in reverse. The end has three steps: no new
// work, what is in flight is answered, and at the deadline the rest is told 503; the guard's thread
// ends the process if all of that hangs. A change of settings is checked as a whole before any part
// of it takes effect.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/large_buffers.h"
#include "cli/command.h"
#include "cli/descriptor_limit.h"
#include "cli/ending_guard.h"
#include "cli/find_machine.h"
#include "cli/live_settings.h"
#include "cli/recommendation.h"
#include "cli/serve_log.h"
#include "cli/serve_options.h"
#include "cli/telemetry_options.h"
#include "log/log.h"
#include "net/event_loop.h"
#include "server/device_readings.h"
#include "server/gpu_facts.h"
#include "server/server.h"
#include "server/stats_writer.h"
#include "serving/device_states.h"
#include "serving/generation_service.h"
#include "serving/inference_service.h"
#include "telemetry/collector.h"
#include "telemetry/device_faults.h"
#include "terminal/text_width.h"

namespace muster {
namespace {

constexpr Duration kReadingsPeriod = std::chrono::seconds(1);
constexpr Duration kLookPeriod = std::chrono::seconds(1);

CommandSpec serve_spec() {
  return {.name = "serve",
          .summary = "answer embeddings, rerank and chat over HTTP",
          .usage = "[NAME=]MODEL... [--listen 127.0.0.1:8000]",
          .positional_least = 0,
          .positional_most = 64,
          .groups = serve_flag_groups(),
          .examples =
              "  muster serve sentence-transformers/all-MiniLM-L6-v2 --devices 2xcpu\n"
              "  curl http://127.0.0.1:8000/v1/embeddings -H 'Content-Type: application/json' \\\n"
              "       -d '{\"model\": \"all-MiniLM-L6-v2\", \"input\": \"a text\"}'\n"
              "  muster serve all-MiniLM-L6-v2 chat=SmolLM2-135M-Instruct.Q4_1.gguf\n"
              "\n"
              "MODEL is a folder in Hugging Face's layout, a name in the local hub cache, or\n"
              "the GGUF file of a model that generates. For one that generates --precision is\n"
              "also own (the file's own bits), and not fp16. With --precision auto the first\n"
              "start of a model measures for some seconds: of one that generates while the\n"
              "server listens (GET /v1/models says so), of others before.\n",
          .reads_foreign_names = true,
          .words = {WordKind::Model}};
}

// Of the time to end, what is left for workers to go, files to be written and threads to be joined.
Duration teardown_time(Duration drain_limit) {
  return std::min<Duration>(drain_limit / 10, std::chrono::seconds(1));
}

/// One server from its first log line to its last.
class ServeRun {
 public:
  explicit ServeRun(const CommandContext& context) : context_(context) {}

  Result<int> run();

 private:
  Status read_settings();
  Status start();
  bool is_end_asked_for();
  Result<int> not_started(const Error& error);
  void start_collector();
  Status start_generation();
  Status start_stats_file();
  void feed_readings();
  void look_after();
  void end_if_hopeless();
  ServeFacts facts() const;
  Status change_settings(const SettingsChange& change);
  Status reload_settings();
  void take(LiveSettings settings, std::string_view by, std::string_view request_id);
  void on_signal(int number);
  void begin_end();
  void end_when_done();
  void end(std::optional<Error> failure);
  void say(LogLevel level, std::string_view text, std::string_view device = {}) const;
  void tell_terminal(std::string_view text) const;
  const ServeOptions& options() const { return settings_->options(); }

  const CommandContext& context_;
  std::optional<LiveSettings> settings_;  // since `read_settings`
  EventLoop loop_;
  std::unique_ptr<EndingGuard> guard_;  // gone only when all below are
  std::unique_ptr<Log> log_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<InferenceService> service_;
  std::unique_ptr<GenerationService> generation_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<StatsWriter> stats_;
  std::unique_ptr<EventLoop::Timer> readings_timer_;
  std::unique_ptr<EventLoop::Timer> look_timer_;
  std::optional<DeviceFaults> faults_;  // where devices are watched
  StateWatch states_;
  bool is_cache_file_behind_ = false;
  bool was_hopeless_ = false;
  std::unique_ptr<EventLoop::Timer> end_timer_;
  std::optional<Error> failure_;
  bool is_ending_ = false;
  bool is_early_end_said_ = false;
  bool is_computed_ = false;  // every call has ended
  bool is_sent_ = false;      // every answer is with its client
};

void ServeRun::say(LogLevel level, std::string_view text, std::string_view device) const {
  log_->write({.level = level, .message = text, .device = device});
}

// Whoever has started it by hand looks there, and where the log goes elsewhere sees nothing else.
void ServeRun::tell_terminal(std::string_view text) const {
  if (options().log.folder.empty()) return;
  fmt::print(stderr, "muster: {}\n", printable(text));
}

// A machine whose devices cannot be watched is served all the same.
void ServeRun::start_collector() {
  const auto options = collector_options(context_.config);
  auto collector = options ? Collector::start(*options, context_.clock)
                           : Result<std::unique_ptr<Collector>>(options.error());
  if (collector) {
    collector_ = *std::move(collector);
  } else {
    say(LogLevel::Warning, fmt::format("devices are not watched: {}", collector.error().message));
  }
}

// There without a decoder as well: one may be loaded while the server runs.
Status ServeRun::start_generation() {
  generation_ = MUSTER_TRY(GenerationService::start(
      options(), service_->roster(), loop_,
      {.on_notice =
           [this](const std::string& text, std::optional<std::string> device) {
             say(LogLevel::Info, text, device.value_or(""));
           },
       .on_fatal = [this](const Error& error) { end(error); },
       .memory_available = [&config = context_.config] { return available_memory(config); },
       .is_loading =
           [this](std::size_t device) { return is_loading(service_->fleet().groups.at(device)); }},
      context_.clock));
  return Done{};
}

Status ServeRun::start_stats_file() {
  if (options().stats_file.empty()) return Done{};
  if (!collector_) {
    return Error{ErrorKind::Unavailable,
                 "there is nothing to write into the statistics file: "
                 "devices are not watched"};
  }
  stats_ = MUSTER_TRY(StatsWriter::start(
      {.file = options().stats_file,
       .interval = options().stats_interval,
       .line =
           [this] {
             return gpu_stats_with_tasks(collector_->snapshot(), service_->status(),
                                         service_->fleet().groups)
                 .dump();
           },
       .keys = {"timestamp", "devices"},
       .on_notice = [this](const std::string& text) { say(LogLevel::Warning, text); }},
      loop_, context_.clock));
  return Done{};
}

// Signals are taken from here on. Until it listens nobody waits for an answer, so that an end that
// is asked for need not wait for what is being read or measured.
Status ServeRun::read_settings() {
  guard_ = MUSTER_TRY(EndingGuard::start(EndingGuard::kLastMoment, [this](int number) {
    loop_.post([this, number] { on_signal(number); });
  }));
  auto options = MUSTER_TRY(serve_options(context_));
  settings_.emplace(context_.config, std::move(options));
  return Done{};
}

Status ServeRun::start() {
  raise_descriptor_limit();
  log_ = MUSTER_TRY(Log::open(options().log));
  tell_terminal(fmt::format("the log is in {}", (options().log.folder / "muster.log").string()));
  if (!options().lost_gpus.empty()) tell_terminal("warning: " + options().lost_gpus);
  // Two things that take half a second each, side by side.
  // Waited for below on every path, before anything of this object is taken down.
  auto collecting = std::async(std::launch::async, [this] { start_collector(); });
  auto service = InferenceService::start(
      options(), loop_,
      {.on_notice =
           [this](const std::string& text, std::optional<std::string> device) {
             say(LogLevel::Info, text, device.value_or(""));
           },
       .on_fatal = [this](const Error& error) { end(error); },
       .is_cancelled = [this] { return is_end_asked_for(); }},
      context_.clock);
  collecting.wait();
  service_ = MUSTER_TRY(std::move(service));
  MUSTER_TRY(start_generation());
  server_ = MUSTER_TRY(Server::start(
      options(), {.service = *service_, .generation = *generation_, .collector = collector_.get()},
      loop_,
      {.config_json = [this](bool shows_places) { return settings_->json(shows_places); },
       .change_config = [this](const SettingsChange& change) { return change_settings(change); },
       .log = [this](const LogLine& line) { log_->write(line); },
       .log_lost_count = [this] { return log_->lost_count(); },
       .recommendation_json =
           [machine = options().machine,
            batch_tokens = options().batch_tokens](const ServedModelStatus& model) {
             return served_recommendation(model, machine, batch_tokens);
           }},
      context_.clock));
  MUSTER_TRY(start_stats_file());
  if (collector_) faults_.emplace(options().devices);
  readings_timer_ = loop_.timer([this] { feed_readings(); });
  feed_readings();
  look_timer_ = loop_.timer([this] { look_after(); });
  // From here on clients may wait for answers, so an end gets the time that is set for it.
  guard_->set_limit(options().drain_limit);
  return Done{};
}

// Asked while it starts.
bool ServeRun::is_end_asked_for() {
  if (!guard_->is_end_asked_for()) return false;
  if (!std::exchange(is_early_end_said_, true)) say(LogLevel::Info, "ending while it is starting");
  return true;
}

// An end that was asked for is no error, however early it comes.
Result<int> ServeRun::not_started(const Error& error) {
  if (error.kind == ErrorKind::Cancelled && guard_->is_end_asked_for()) return 0;
  return error;
}

ServeFacts ServeRun::facts() const {
  return {.options = options(),
          .models = service_->models(),
          .decoders = generation_->models(),
          .key_count = server_->key_count(),
          .port = server_->port()};
}

// What nobody asks for and goes wrong all the same.
void ServeRun::look_after() {
  const auto models = service_->models();
  const auto devices =
      with_decoders(service_->fleet().groups, models, generation_->decoders().hosted());
  for (const auto& [level, text] : states_.changes(devices, models)) {
    say(level, text);
  }
  const auto error = service_->tend_cache();
  if (error && !is_cache_file_behind_) {
    say(LogLevel::Error,
        fmt::format("the cache's file is behind, and vectors are kept in memory alone until it can "
                    "be written again: {}",
                    error->message));
  } else if (!error && is_cache_file_behind_) {
    say(LogLevel::Info, "the cache's file has all vectors again");
  }
  is_cache_file_behind_ = error.has_value();
  end_if_hopeless();
  look_timer_->set(context_.clock.now() + kLookPeriod);
}

// Whoever runs servers starts this one again, or is told that it does not start, by its exit code;
// one that listens and can serve nothing until an operator comes looks well from outside. It ends
// at the second look, so that a client that has just seen why, or has asked for a restart, is in
// time; and not while a model is opened that somebody has asked for.
void ServeRun::end_if_hopeless() {
  const auto models = service_->models();
  const auto decoders = generation_->models();
  const bool is_opening = service_->roster().count() > models.size() + decoders.size();
  auto error =
      is_opening ? std::nullopt : hopeless_error(service_->fleet().groups, models, decoders);
  const bool is_again = std::exchange(was_hopeless_, error.has_value());
  if (!error || !is_again || std::exchange(is_ending_, true)) return;
  say(LogLevel::Error, error->message);
  failure_ = std::move(error);
  begin_end();
}

// Placement by memory or load goes by these readings, and a device that its driver reports as
// faulty is put aside. Where devices are not watched, nothing is fed and the timer is not set
// again.
void ServeRun::feed_readings() {
  if (!collector_) return;
  const auto snapshot = collector_->snapshot();
  for (std::size_t i = 0; i < options().devices.size(); ++i) {
    if (const auto readings = readings_of(options().devices[i], snapshot)) {
      service_->set_readings(i, *readings);
    }
  }
  for (const auto& [device, fault] : faults_->changes(snapshot)) {
    service_->fleet_admin().set_fault(device, fault);
  }
  readings_timer_->set(context_.clock.now() + kReadingsPeriod);
}

Status ServeRun::change_settings(const SettingsChange& change) {
  auto settings = MUSTER_TRY(settings_->changed(change.values));
  server_->apply(settings.options());
  take(std::move(settings), "by " + change.asker, change.request_id);
  return Done{};
}

// Files of keys and certificates are read before anything is taken over: a broken one leaves all as
// it was.
Status ServeRun::reload_settings() {
  auto settings = MUSTER_TRY(settings_->reloaded(context_.sources));
  MUSTER_TRY(server_->reload(settings.options()));
  take(std::move(settings), "by SIGHUP", {});
  return Done{};
}

// The line is written at the more talkative of both levels, so that no change goes unsaid but where
// the log was off before and is after.
void ServeRun::take(LiveSettings settings, std::string_view by, std::string_view request_id) {
  const auto changes = settings.changes_since(*settings_);
  settings_ = std::move(settings);
  // Keys and certificates were read again as well: their names may be as before, and not they.
  const auto text = changes.empty()
                        ? fmt::format("settings are as they were, files are read again ({})", by)
                        : fmt::format("settings changed {}: {}", by, changes);
  log_->set_level(std::min(log_->level(), options().log.level));
  log_->write({.message = text, .request_id = request_id});
  log_->set_level(options().log.level);
  guard_->set_limit(options().drain_limit);
}

void ServeRun::on_signal(int number) {
  if (number == SIGHUP) {
    // First, so that the lines about it are in the new file.
    if (const auto opened = log_->reopen(); !opened) {
      say(LogLevel::Error, opened.error().message);
    }
    if (const auto done = reload_settings(); done) {
      say(LogLevel::Info, server_->key_count()
                              ? fmt::format("SIGHUP: keys: {}", *server_->key_count())
                              : "SIGHUP: no keys");
    } else {
      say(LogLevel::Error, fmt::format("SIGHUP changed nothing: {}", done.error().message));
    }
  } else if (std::exchange(is_ending_, true)) {
    server_->give_up();  // asked twice
    end(std::nullopt);
  } else {
    begin_end();
  }
}

// Whatever takes longer than the time to end is told 503, or cut off.
void ServeRun::begin_end() {
  say(LogLevel::Info, "ending: no new work; what is in flight is answered");
  const Duration limit = options().drain_limit;
  end_timer_ = loop_.timer([this] {
    server_->give_up();
    end(std::nullopt);
  });
  end_timer_->set(context_.clock.now() + limit - teardown_time(limit));
  server_->begin_drain([this] {
    is_sent_ = true;
    end_when_done();
  });
  generation_->decoders().end_loads();
  service_->drain([this] {
    is_computed_ = true;
    end_when_done();
  });
}

void ServeRun::end_when_done() {
  if (is_computed_ && is_sent_) end(std::nullopt);
}

void ServeRun::end(std::optional<Error> failure) {
  if (failure) failure_ = std::move(failure);
  loop_.stop();
}

Result<int> ServeRun::run() {
  MUSTER_TRY(read_settings());
  if (const auto started = start(); !started) return not_started(started.error());
  if (context_.config.at(SettingId::ApiKey).origin == Origin::Flag) {
    say(LogLevel::Warning,
        "--api-key: other users of this machine see flags in the list of processes; "
        "MUSTER_API_KEY and --keys-file keep the key from them");
  }
  for (const auto& [level, text] : start_lines(facts())) say(level, text);
  tell_terminal(listening_line(facts()));
  look_after();
  loop_.run();
  // What reads from the service goes before the service.
  stats_.reset();
  server_.reset();
  generation_.reset();
  service_.reset();
  if (failure_) return *failure_;
  return 0;
}

}  // namespace

Command serve_command() {
  return {serve_spec(), [](const CommandContext& context) -> Result<int> {
            return_large_buffers();
            return ServeRun(context).run();
          }};
}

}  // namespace muster
