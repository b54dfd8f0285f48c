// The child process that calls the drivers. The main thread opens them and then tells costs;
// others read the socket, visit devices, wait for events and look for edges. The process ends by
// _exit and without destructors, because a thread may sit in a driver that never returns. The
// end of the socket ends the process, too.

#include "telemetry/sampler.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/cpu_time.h"
#include "base/file.h"
#include "base/mutex.h"
#include "net/frame_channel.h"
#include "telemetry/call_costs.h"
#include "telemetry/call_page.h"
#include "telemetry/open_sources.h"
#include "telemetry/sample_ring.h"
#include "telemetry/sampling.h"
#include "wire/messages.h"
#include "wire/telemetry_messages.h"

namespace muster {
namespace {

// The costs are told a second after the start, and then so often: telling them costs as much as
// several visits.
constexpr Duration kFirstCosts = std::chrono::seconds(1);
constexpr Duration kCostsPeriod = std::chrono::seconds(5);
constexpr Duration kEventsWait = std::chrono::seconds(5);
// How long a search waits for the first visit, while the drivers are being opened.
constexpr Duration kSamplingWait = std::chrono::seconds(5);
// A driver that gives no events any more is asked again after so long.
constexpr Duration kEventsPause = std::chrono::seconds(1);

// Runs no destructor: a thread may be inside a driver that never comes back.
[[noreturn]] void end_process(int code) { ::_exit(code); }

class Sampler final : public SampleSink {
 public:
  Sampler(UniqueFd socket, CallPage page, SampleRing ring, const Clock& clock)
      : socket_(std::move(socket)),
        page_(std::move(page)),
        ring_(std::move(ring)),
        clock_(clock),
        opening_(page_, CallPage::kOpening) {}

  [[noreturn]] void run();
  void take(const DeviceSample& sample) override;
  void end_round() override;

 private:
  [[noreturn]] void read_socket();
  Status on_frame(const FrameHeader& header, std::span<const std::byte> payload);
  void send(TelemetryMessageType type, std::uint64_t id, const std::vector<std::byte>& payload);
  Status watch(const Watch& watch);
  void find_edges(std::uint64_t id, Duration limit);
  Sampling* sampling();
  void wait_for_events(std::size_t source);
  void send_costs();

  const UniqueFd socket_;
  CallPage page_;
  SampleRing ring_;                             // of the sink's methods, as the next
  std::vector<std::byte> record_;               // memory for one
  std::atomic<std::uint64_t> lost_visits_ = 0;  // there was no room in the ring
  const Clock& clock_;
  CallCosts opening_;
  Mutex send_mutex_;
  std::mutex mutex_;
  std::condition_variable has_watch_;
  std::condition_variable has_sampling_;
  std::optional<Watch> watch_;    // guarded by mutex_
  bool has_viewer_ = false;       // guarded by mutex_
  Sampling* sampling_ = nullptr;  // guarded by mutex_
  OpenedSources opened_;
  std::list<std::jthread> edge_threads_;  // of the thread that reads frames
};

// The way out is the end of the process: threads that hang in a driver use the members until then.
void Sampler::run() {
  page_.note_crashes();
  const std::jthread reader([this] { read_socket(); });
  std::unique_lock lock(mutex_);
  has_watch_.wait(lock, [this] { return watch_.has_value(); });
  const auto request = *watch_;
  lock.unlock();
  const auto status = watch(request);
  send(TelemetryMessageType::Refused, 0, encode(Failed{status.error()}));
  end_process(exit_code(status.error().kind));
}

void Sampler::read_socket() {
  FrameAssembler frames;
  for (;;) {
    // poll first: a thread that blocks in read() is woken each time the collector takes a frame.
    pollfd readable{socket_.get(), POLLIN, 0};
    if (::poll(&readable, 1, -1) < 0) continue;
    const auto space = frames.space();
    const ssize_t size = ::read(socket_.get(), space.data(), space.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) end_process(0);
    const auto taken =
        frames.advance(static_cast<std::size_t>(size),
                       [this](const FrameHeader& header, std::span<const std::byte> payload) {
                         return on_frame(header, payload);
                       });
    if (!taken) end_process(exit_code(taken.error().kind));
  }
}

// Returns only with an error.
Status Sampler::watch(const Watch& watch) {
  opened_ = MUSTER_TRY(open_sources(watch, clock_, opening_));
  send(TelemetryMessageType::Machine, 0, encode(opened_.machine));
  Sampling sampling(opened_.samplers, watch.periods, page_, clock_, *this);
  {
    const std::lock_guard lock(mutex_);
    sampling_ = &sampling;
    sampling.set_viewer(has_viewer_);
  }
  has_sampling_.notify_all();
  std::list<std::jthread> events;
  for (std::size_t source = 0; source < opened_.sources.size(); ++source) {
    if (opened_.sources[source].events) {
      events.emplace_back([this, source] { wait_for_events(source); });
    }
  }
  for (auto next = clock_.now() + kFirstCosts;; next += kCostsPeriod) {
    std::this_thread::sleep_until(next);
    send_costs();
  }
}

void Sampler::take(const DeviceSample& sample) {
  record_ = encode(std::span(&sample, 1), std::move(record_));
  if (!ring_.append(record_)) ++lost_visits_;
}

void Sampler::end_round() {
  if (ring_.begin_notice()) send(TelemetryMessageType::Samples, 0, {});
}

Status Sampler::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  switch (static_cast<TelemetryMessageType>(header.type)) {
    case TelemetryMessageType::Watch: {
      const std::lock_guard lock(mutex_);
      watch_ = MUSTER_TRY(decode_watch(payload));
      has_watch_.notify_all();
      return Done{};
    }
    case TelemetryMessageType::FindEdges:
      find_edges(header.id, MUSTER_TRY(decode_find_edges(payload)).limit);
      return Done{};
    case TelemetryMessageType::Viewer: {
      const std::lock_guard lock(mutex_);
      has_viewer_ = MUSTER_TRY(decode_viewer(payload)).is_there;
      if (sampling_ != nullptr) sampling_->set_viewer(has_viewer_);
      return Done{};
    }
    default:
      return Error{ErrorKind::Corrupt,
                   "the collector sent a message of unknown type: " + std::to_string(header.type)};
  }
}

void Sampler::send(TelemetryMessageType type, std::uint64_t id,
                   const std::vector<std::byte>& payload) {
  const std::array<std::span<const std::byte>, 1> parts{payload};
  const MutexLock lock(send_mutex_);
  if (!write_frame(socket_.get(), static_cast<std::uint8_t>(type), id, parts)) end_process(0);
}

void Sampler::find_edges(std::uint64_t id, Duration limit) {
  // The search blocks, and the end of the socket must be seen meanwhile. Each search ends within
  // seconds, so joining the oldest of so many hardly waits.
  constexpr std::size_t kSearchesMax = 8;
  if (edge_threads_.size() == kSearchesMax) edge_threads_.pop_front();
  edge_threads_.emplace_back([this, id, limit] {
    auto* sampling = this->sampling();
    const auto edges = sampling != nullptr ? sampling->find_edges(limit) : std::vector<EdgeFound>();
    send(TelemetryMessageType::Edges, id, encode(std::span(edges)));
  });
}

// Whoever was told of the machine may ask for edges before anything is sampled. nullptr: a driver
// that is being opened hangs.
Sampling* Sampler::sampling() {
  std::unique_lock lock(mutex_);
  has_sampling_.wait_for(lock, kSamplingWait, [this] { return sampling_ != nullptr; });
  return sampling_;
}

void Sampler::wait_for_events(std::size_t source) {
  const auto first = opened_.first_devices[source];
  for (;;) {
    auto events = opened_.sources[source].events->wait(kEventsWait);
    if (!events) {
      std::this_thread::sleep_for(kEventsPause);
      continue;
    }
    if (events->empty()) continue;
    for (auto& event : *events) event.device += first;
    send(TelemetryMessageType::Events, 0, encode(std::span<const DeviceEvent>(*events)));
  }
}

/// Source: Linux, Documentation/filesystems/proc.rst, /proc/PID/statm: the second number is the
/// resident pages.
std::uint64_t resident_bytes() {
  const auto statm = read_file("/proc/self/statm");
  unsigned long long pages = 0;
  if (!statm || std::sscanf(statm->c_str(), "%*u %llu", &pages) != 1) return 0;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void Sampler::send_costs() {
  SamplerCosts costs;
  std::map<std::string, CallCost> calls;
  opening_.add_to(calls);
  sampling_->add_costs_to(calls);
  for (auto& [function, cost] : calls) costs.calls.push_back(std::move(cost));
  costs.ticks = sampling_->ticks();
  costs.ticks[static_cast<std::size_t>(Tier::Fast)].missed += lost_visits_;
  costs.cpu_seconds = process_cpu_seconds();
  costs.rss_bytes = resident_bytes();
  send(TelemetryMessageType::Costs, 0, encode(costs));
}

}  // namespace

Status run_sampler(UniqueFd socket, UniqueFd page, UniqueFd ring, const Clock& clock) {
  // A belt to the braces of the socket's end: this process has no use without its collector.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Started by its descriptor it would be called by that number in lists of processes.
  ::prctl(PR_SET_NAME, "muster-sampler");
  auto calls = MUSTER_TRY(CallPage::map(std::move(page)));
  auto samples = MUSTER_TRY(SampleRing::map(std::move(ring)));
  Sampler(std::move(socket), std::move(calls), std::move(samples), clock).run();
}

}  // namespace muster
