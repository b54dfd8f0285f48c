// Devices of this machine as frames. A driver may take seconds to start, so the collector starts
// beside the screen, which says meanwhile that it is looking and can be left at any time. What the
// sampler itself costs is taken over some seconds, since the kernel counts it in coarse ticks.

#include "cli/top_source.h"

#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <utility>

namespace muster {
namespace {

// So that the first frame is there within a tenth of a second, with devices or without.
constexpr Duration kSettleTime = std::chrono::milliseconds(60);
constexpr Duration kCostWindowLeast = std::chrono::seconds(3);
constexpr Duration kSoon = std::chrono::milliseconds(20);
// The kernel counts a process's time in hundredths of a second: shorter intervals say little.
constexpr Duration kProcessPeriod = std::chrono::milliseconds(900);
constexpr std::size_t kProcessesMost = 256;  // more than any screen shows

}  // namespace

std::string clock_text(double unix_seconds) {
  const auto whole = static_cast<std::time_t>(std::floor(unix_seconds));
  std::tm local{};
  localtime_r(&whole, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

std::optional<double> sampler_cores(const TelemetrySnapshot& before, const TelemetrySnapshot& now) {
  const auto spent = now.collector.cpu_seconds - before.collector.cpu_seconds;
  // A sampler that was started again counts its time from zero.
  const bool is_same = now.collector.sampler_pid == before.collector.sampler_pid;
  if (!is_same || now.collector.cpu_seconds <= 0 || spent < 0 ||
      now.at - before.at < kCostWindowLeast) {
    return std::nullopt;
  }
  return spent / seconds(now.at - before.at);
}

LiveSource::LiveSource(const CollectorOptions& options, const Clock& clock, Duration interval)
    : options_(options), interval_(interval), clock_(clock), process_reader_(options.root) {
  look_at_processes();  // shares are known from the second look on
  starting_ = std::async(std::launch::async,
                         [options, &clock] { return Collector::start(options, clock); });
}

Result<std::unique_ptr<LiveSource>> LiveSource::start(const CollectorOptions& options,
                                                      const Clock& clock, Duration interval) {
  auto source = std::unique_ptr<LiveSource>(new LiveSource(options, clock, interval));
  MUSTER_TRY(source->settle(kSettleTime));
  return source;
}

Status LiveSource::settle(Duration limit) {
  if (!starting_.valid() || starting_.wait_for(limit) != std::future_status::ready) return Done{};
  collector_ = MUSTER_TRY(starting_.get());
  collector_->set_viewer(true);
  return Done{};
}

// A simulated machine has no processes: those of this one are not its.
void LiveSource::look_at_processes() {
  if (options_.simulated) return;
  looked_at_ = clock_.now();
  processes_ = process_reader_.read(kProcessesMost);
}

Status LiveSource::wait() {
  if (starting_.valid()) starting_.wait();
  return settle(Duration(0));
}

bool LiveSource::is_settled() const { return !starting_.valid(); }

Result<std::optional<TopData>> LiveSource::frame() {
  MUSTER_TRY(settle(Duration(0)));
  if (!collector_) return std::optional<TopData>();
  TopData data;
  if (clock_.now() - looked_at_ >= kProcessPeriod) look_at_processes();
  data.snapshot = collector_->snapshot();
  data.snapshot.processes = processes_;
  data.trends =
      find_trends(data.snapshot, [&](std::uint32_t device, Reading reading, Duration since) {
        return collector_->history(device, reading, since);
      });
  recent_.push_back(data.snapshot);
  while (recent_.front().at < data.snapshot.at - kCostWindow) recent_.pop_front();
  data.sampler_cores = sampler_cores(recent_.front(), data.snapshot);
  data.clock = clock_text(data.snapshot.unix_seconds);
  return std::optional(std::move(data));
}

Duration LiveSource::interval() const { return collector_ ? interval_ : kSoon; }

void LiveSource::take(TopRequestKind) {}

std::optional<std::string> LiveSource::signal_refusal() const {
  if (options_.simulated) return "these processes are simulated ones";
  if (options_.root != "/") return "these processes are those of another machine";
  return std::nullopt;
}

}  // namespace muster
