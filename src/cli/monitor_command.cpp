// One thread waits for time and signals at once (sigtimedwait), because recording, serving and a
// measured command may all be asked for together. Ticks keep to a grid, so that a slow one does not
// shift those after it; ticks that were missed are left out. With a command the exit code is the
// command's own.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/messages.h"
#include "cli/monitor_child.h"
#include "cli/monitor_csv.h"
#include "cli/monitor_options.h"
#include "cli/monitor_report.h"
#include "cli/monitor_table.h"
#include "cli/top_source.h"
#include "hw/cpu/process_reader.h"
#include "metrics/exposition.h"
#include "net/http_server.h"
#include "telemetry/collector.h"
#include "telemetry/recording.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

/// Source: POSIX.1-2017, "Shell Command Language", 2.8.2.
constexpr int kCannotRun = 126;
constexpr int kNoSuchCommand = 127;

/// Source: Prometheus, text exposition format 0.0.4.
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

HttpResponse answer(const HttpRequest& request, const Collector& collector, MetricSet set) {
  if (request.method != "GET" && request.method != "HEAD") {
    return {.status = 405, .body = "only GET\n", .headers = {{"Allow", "GET, HEAD"}}};
  }
  if (request.path == "/metrics") {
    return {.content_type = kMetricsType, .body = prometheus_text(collector.snapshot(), set)};
  }
  return {.status = 404, .body = "the metrics are at /metrics\n"};
}

Result<std::unique_ptr<HttpServer>> serve(const MonitorOptions& options,
                                          const Collector& collector) {
  HttpServerOptions server_options;
  server_options.listen = *options.listen;
  auto server = MUSTER_TRY(HttpServer::start(
      server_options, [&collector, set = options.metric_set](const HttpRequest& request,
                                                             const HttpRespond& respond) {
        respond(answer(request, collector, set));
      }));
  const auto& host = options.listen->host;
  const bool is_v6 = host.find(':') != std::string::npos;
  fmt::print(stderr, "listening on http://{}{}{}:{}/metrics\n", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", server->port());
  return server;
}

// The signals that end this, or are passed on; and the end of a child.
sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  // SIGCHLD is among them so that the end of the command ends the wait at once.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
    sigaddset(&signals, number);
  }
  return signals;
}

/// Everything that goes on at once.
class Monitor {
 public:
  Monitor(const CommandContext& context, const MonitorOptions& options)
      : context_(context), options_(options), processes_(options.collector.root) {
    const auto terminal = context.terminal(STDOUT_FILENO);
    if (terminal.is_terminal) table_.emplace(options.metrics, terminal);
  }

  Result<int> run();

 private:
  Status start();
  bool has_ticks() const { return recorder_ || child_ || !server_; }
  Status tick();
  std::optional<int> wait_until(TimePoint time);
  Result<int> end(int code);

  const CommandContext& context_;
  const MonitorOptions& options_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<HttpServer> server_;
  std::optional<LineRecorder> recorder_;
  ProcessReader processes_;
  std::optional<MonitorTable> table_;  // where somebody looks at standard output
  std::shared_ptr<CommandMeter> meter_;
  std::optional<ChildCommand> child_;
  bool is_command_at_fault_ = false;  // it could not be started
};

Status Monitor::start() {
  collector_ = MUSTER_TRY(Collector::start(options_.collector, context_.clock));
  // From here on signals are waited for, and no thread that is started now takes them.
  const auto signals = awaited_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  if (options_.listen) server_ = MUSTER_TRY(serve(options_, *collector_));
  if (options_.recording) recorder_ = MUSTER_TRY(LineRecorder::open(*options_.recording));
  if (options_.command.empty()) return Done{};
  collector_->set_viewer(true);  // who else is on the devices is asked each second
  meter_ = MUSTER_TRY(CommandMeter::start(*collector_, context_.clock));
  auto child = ChildCommand::start(options_.command);
  is_command_at_fault_ = !child;
  child_ = MUSTER_TRY(std::move(child));
  return Done{};
}

Status Monitor::tick() {
  const bool is_printed = !recorder_ && !server_ && !child_;
  auto snapshot = collector_->snapshot();
  if (options_.process_count > 0) snapshot.processes = processes_.read(options_.process_count);
  if (recorder_) {
    MUSTER_TRY(recorder_->write(options_.is_csv ? csv_lines(snapshot, options_.metrics)
                                                : recording_line(snapshot, options_.metrics)));
  }
  for (std::uint32_t i = 0; child_ && i < snapshot.devices.size(); ++i) {
    for (const auto& process : snapshot.devices[i].processes) {
      if (process.kind != GpuProcessKind::Mps && !child_->has(process.pid)) meter_->set_shared(i);
    }
  }
  if (!is_printed) return Done{};
  if (table_) {
    const auto clock = clock_text(snapshot.unix_seconds);
    MUSTER_TRY(context_.output.append(table_->lines(snapshot, clock)));
    return context_.output.flush();
  }
  for (const auto& device : snapshot.devices) {
    MUSTER_TRY(context_.output.append(monitor_line(device, options_.metrics)));
  }
  return context_.output.flush();
}

// The exit code, if it is over before `time`.
std::optional<int> Monitor::wait_until(TimePoint time) {
  const auto signals = awaited_signals();
  for (;;) {
    const auto left = std::max(time - context_.clock.now(), Duration::zero());
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec wait{whole.count(), (left - whole).count()};
    const int number = ::sigtimedwait(&signals, nullptr, &wait);
    if (child_) {
      if (const auto code = child_->exit_code()) return code;
      if (number > 0 && number != SIGCHLD) child_->pass_on(number);
    } else if (number > 0 && number != SIGCHLD) {
      return 0;
    }
    if (number < 0 && errno == EAGAIN) return std::nullopt;
  }
}

Result<int> Monitor::end(int code) {
  if (!meter_) return code;
  auto use = meter_->finish(*collector_);
  use.own = child_->use();
  if (options_.wants_json) {
    MUSTER_TRY(context_.output.append(command_use_json(use)));
  } else {
    fmt::print(stderr, "{}", command_use_text(use, context_.terminal(STDERR_FILENO)));
  }
  return code;
}

Result<int> Monitor::run() {
  const auto started = start();
  // As a shell tells it, so that a script need not know that something stands in between.
  if (!started && is_command_at_fault_) {
    say(Tone::Error, started.error().message, context_.color);
    return started.error().kind == ErrorKind::NotFound ? kNoSuchCommand : kCannotRun;
  }
  if (!started) return started.error();
  // Nothing to record and no command: readings are taken when somebody asks for them.
  while (!has_ticks()) {
    // A server alone has nothing to do for this thread, and a machine that sleeps is not woken.
    if (const auto code = wait_until(context_.clock.now() + std::chrono::hours(1)))
      return end(*code);
  }
  for (auto next = context_.clock.now();; next += options_.interval) {
    MUSTER_TRY(tick());
    if (context_.output.is_reader_gone() && !child_) return 0;
    // A tick that took longer than the interval leaves out those it ran into.
    while (next + options_.interval < context_.clock.now()) next += options_.interval;
    if (const auto code = wait_until(next + options_.interval)) return end(*code);
  }
}

Result<int> run_monitor(const CommandContext& context) {
  const auto options = MUSTER_TRY(monitor_options(context));
  return Monitor(context, options).run();
}

}  // namespace

Command monitor_command() { return {monitor_spec(), run_monitor}; }

}  // namespace muster
