#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "cli/command.h"
#include "cli/live_settings.h"
#include "cli/recommendation.h"
#include "cli/serve_options.h"
#include "cli/stats_writer.h"
#include "cli/telemetry_options.h"
#include "log/log.h"
#include "net/event_loop.h"
#include "server/device_readings.h"
#include "server/gpu_facts.h"
#include "server/server.h"
#include "service/inference_service.h"
#include "telemetry/collector.h"

namespace muster {
namespace {

constexpr Duration kReadingsPeriod = std::chrono::seconds(1);

CommandSpec serve_spec() {
  return {.name = "serve",
          .summary = "answer embeddings and rerank over HTTP on all devices",
          .usage = "[NAME=]MODEL... [--listen 127.0.0.1:8000]",
          .positional_least = 0,
          .positional_most = 64,
          .groups = serve_flag_groups(),
          .examples =
              "  muster serve sentence-transformers/all-MiniLM-L6-v2 --devices 2xcpu\n"
              "  curl http://127.0.0.1:8000/v1/embeddings -H 'Content-Type: application/json' \\\n"
              "       -d '{\"model\": \"all-MiniLM-L6-v2\", \"input\": \"a text\"}'\n",
          .reads_foreign_names = true};
}

// As many connections as the limits of this process can ever allow.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Blocked before any thread is started, so that all of them come by the descriptor.
Result<UniqueFd> take_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.is_open()) return system_error("signals", "wait for", errno);
  return fd;
}

/// One server from its first log line to its last.
class ServeRun {
 public:
  ServeRun(const CommandContext& context, ServeOptions options)
      : context_(context), settings_(context.config, std::move(options)) {}

  Result<int> run();

 private:
  Status start();
  void start_collector();
  Status start_stats_file();
  void feed_readings();
  void on_signal();
  Status put_into_force(Result<LiveSettings> changed);
  void end(std::optional<Error> failure);
  void say(LogLevel level, std::string_view text, std::string_view device = {}) const;
  const ServeOptions& options() const { return settings_.options(); }

  const CommandContext& context_;
  LiveSettings settings_;
  EventLoop loop_;
  UniqueFd signals_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<InferenceService> service_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<StatsWriter> stats_;
  std::unique_ptr<EventLoop::Watch> signal_watch_;
  std::unique_ptr<EventLoop::Timer> readings_timer_;
  std::optional<Error> failure_;
  bool is_ending_ = false;
};

void ServeRun::say(LogLevel level, std::string_view text, std::string_view device) const {
  log_->write({.level = level, .message = text, .device = device});
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
                                         service_->fleet().status())
                 .dump();
           },
       .on_notice = [this](const std::string& text) { say(LogLevel::Warning, text); }},
      loop_, context_.clock));
  return Done{};
}

Status ServeRun::start() {
  raise_descriptor_limit();
  signals_ = MUSTER_TRY(take_signals());
  log_ = MUSTER_TRY(Log::open(options().log));
  // Two things that take half a second each, side by side.
  auto collecting = std::async(std::launch::async, [this] { start_collector(); });
  auto service = InferenceService::start(
      options(), loop_,
      {.on_notice =
           [this](const std::string& text, std::optional<std::string> device) {
             say(LogLevel::Info, text, device.value_or(""));
           },
       .on_fatal = [this](const Error& error) { end(error); }},
      context_.clock);
  collecting.wait();
  service_ = MUSTER_TRY(std::move(service));
  server_ = MUSTER_TRY(
      Server::start(options(), *service_, collector_.get(), loop_,
                    {.config_json = [this] { return settings_.json(); },
                     .change_config =
                         [this](const std::map<std::string, std::string>& values) {
                           return put_into_force(settings_.changed(values));
                         },
                     .recommendation_json =
                         [machine = options().machine,
                          batch_tokens = options().batch_tokens](const ServedModelStatus& model) {
                           return served_recommendation(model, machine, batch_tokens);
                         }},
                    context_.clock));
  MUSTER_TRY(start_stats_file());
  signal_watch_ = loop_.watch(signals_.get(), [this] { on_signal(); });
  readings_timer_ = loop_.timer([this] { feed_readings(); });
  feed_readings();
  return Done{};
}

void ServeRun::feed_readings() {
  if (!collector_) return;
  const auto snapshot = collector_->snapshot();
  for (std::size_t i = 0; i < options().devices.size(); ++i) {
    if (const auto readings = readings_of(options().devices[i], snapshot)) {
      service_->fleet().set_readings(i, *readings);
    }
  }
  readings_timer_->set(context_.clock.now() + kReadingsPeriod);
}

Status ServeRun::put_into_force(Result<LiveSettings> changed) {
  auto settings = MUSTER_TRY(std::move(changed));
  MUSTER_TRY(server_->reload(settings.options()));
  settings_ = std::move(settings);
  log_->set_level(options().log.level);
  return Done{};
}

void ServeRun::on_signal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGHUP) {
      const auto done = put_into_force(settings_.reloaded(context_.sources));
      say(done ? LogLevel::Info : LogLevel::Error,
          done ? "the settings were read again" : done.error().message);
      if (const auto opened = log_->reopen(); !opened) {
        say(LogLevel::Error, opened.error().message);
      }
    } else if (std::exchange(is_ending_, true)) {
      end(std::nullopt);  // asked twice: what is in flight is given up
    } else {
      say(LogLevel::Info, "ending: no new work; what is in flight is answered");
      service_->drain([this] { end(std::nullopt); });
      server_->begin_drain();
    }
  }
}

void ServeRun::end(std::optional<Error> failure) {
  if (failure) failure_ = std::move(failure);
  loop_.stop();
}

Result<int> ServeRun::run() {
  MUSTER_TRY(start());
  const auto& listen = options().http.listen;
  const bool is_v6 = listen.host.find(':') != std::string::npos;
  say(LogLevel::Info,
      fmt::format("listening on {}://{}{}{}:{}", options().http.tls ? "https" : "http",
                  is_v6 ? "[" : "", listen.host, is_v6 ? "]" : "", server_->port()));
  loop_.run();
  stats_.reset();
  server_.reset();
  service_.reset();
  if (failure_) return *failure_;
  return 0;
}

}  // namespace

Command serve_command() {
  return {serve_spec(), [](const CommandContext& context) -> Result<int> {
            auto options = MUSTER_TRY(serve_options(context));
            return ServeRun(context, std::move(options)).run();
          }};
}

}  // namespace muster
