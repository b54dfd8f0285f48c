// The parent's side of the sampler, and its supervisor. One thread runs a sampler after the
// other: start, serve, bury, wait. Everything that can hang or crash is in the child, so methods
// here only take a lock. A sampler that dies is judged by the call it died in: a device with two
// such deaths is left out. Device numbers differ from sampler to sampler; they are mapped to
// those of the first by the devices' keys.

#include "telemetry/collector.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/wall_clock.h"
#include "telemetry/open_sources.h"
#include "telemetry/sampler_process.h"
#include "telemetry/telemetry_state.h"
#include "wire/messages.h"
#include "wire/telemetry_messages.h"

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The wait before each start of a sampler that follows a short life; the last one from then on.
constexpr std::array<Duration, 4> kRestartWaits{Duration::zero(), milliseconds(200),
                                                milliseconds(500), seconds(1)};
constexpr Duration kLongLife = seconds(10);
constexpr std::uint32_t kStrikesMax = 2;
// An answer about edges may come so much later than asked: the frame's way, and a machine on which
// the sampler waits for a core. Without it the command that is to be measured would not be run at
// all.
constexpr Duration kAnswerGrace = seconds(12);

// While it lives, threads that are started inherit a mask without signals: those are for the
// threads of the program, which wait for them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

class SamplerCollector final : public Collector {
 public:
  SamplerCollector(CollectorOptions options, SamplerProgram program, const Clock& clock,
                   CallPage page, SampleRing ring, UniqueFd wake)
      : options_(std::move(options)),
        program_(std::move(program)),
        clock_(clock),
        page_(std::move(page)),
        wake_(std::move(wake)),
        ring_(std::move(ring)) {}
  ~SamplerCollector() override;

  Status begin(const std::function<bool()>& is_cancelled);

  const WatchedMachine& machine() const override { return state_->machine(); }
  TelemetrySnapshot snapshot() const override;
  std::vector<HistoryPoint> history(std::uint32_t device, Reading reading,
                                    Duration since) const override;
  void subscribe(std::function<void(const DeviceSample&)> on_sample) override;
  Result<std::vector<EnergyEdge>> find_edges(Duration limit) override;
  void set_viewer(bool is_there) override;

 private:
  struct Outgoing {
    TelemetryMessageType type;
    std::uint64_t id;
    std::vector<std::byte> payload;
  };

  void run();
  bool start_sampler();
  void serve();
  Status on_frame(const FrameHeader& header, std::span<const std::byte> payload);
  void on_machine(WatchedMachine machine);
  Status take_samples();
  Status drain(std::vector<DeviceSample>* taken) const;
  void wish_notices();
  Status on_events(std::span<const std::byte> payload);
  Status on_edges(std::uint64_t id, std::span<const std::byte> payload);
  void send_outgoing();
  void bury();
  void blame(const SamplerDeath& death);
  void fail_start(Error error);
  bool pause(Duration time);
  void wake() const;
  void send_later(Outgoing message);
  TelemetryState::CallOf call_of() const;
  std::optional<std::uint32_t> known_device(std::uint32_t device) const;

  const CollectorOptions options_;
  const SamplerProgram program_;
  const Clock& clock_;
  CallPage page_;
  const UniqueFd wake_;  // eventfd: something is in outgoing_, or the end

  // Of the loop's thread.
  std::unique_ptr<SamplerProcess> sampler_;
  TimePoint started_at_;
  std::size_t short_lives_ = 0;

  // std::mutex rather than Mutex: the condition variable needs it. It guards all that follows.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Whoever looks takes in first what the sampler has left in the ring.
  mutable SampleRing ring_;
  mutable std::vector<std::byte> record_;        // memory for one of the ring
  mutable std::optional<TelemetryState> state_;  // set once, with the first Machine
  bool has_started_ = false;                     // each device was visited once
  bool has_subscribers_ = false;
  std::optional<Error> start_error_;
  bool is_stopping_ = false;
  bool has_viewer_ = false;
  std::vector<Outgoing> outgoing_;
  std::vector<std::optional<std::uint32_t>> known_devices_;  // of this sampler's numbers, ours
  std::vector<std::uint32_t> strikes_;                       // by our numbers
  std::vector<std::string> left_out_;                        // keys
  std::uint64_t next_search_ = 1;
  std::set<std::uint64_t> open_searches_;
  std::map<std::uint64_t, std::optional<std::vector<EdgeFound>>> answers_;  // nullopt: it died

  Mutex subscribers_mutex_;
  std::vector<std::function<void(const DeviceSample&)>> subscribers_;
  std::jthread loop_;
};

SamplerCollector::~SamplerCollector() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  wake();
}

Status SamplerCollector::begin(const std::function<bool()>& is_cancelled) {
  {
    const SignalsBlocked blocked;
    loop_ = std::jthread([this] { run(); });
  }
  const auto deadline = clock_.now() + options_.start_limit;
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] {
    return start_error_ || (state_ && state_->is_complete(clock_.now(), call_of()));
  };
  // A device that hangs tells nobody: it is looked for again from time to time.
  constexpr Duration kLook = milliseconds(100);
  while (!is_ready() && clock_.now() < deadline) {
    if (is_cancelled && is_cancelled()) {
      return Error{ErrorKind::Cancelled, "the sampler is not wanted any more"};
    }
    changed_.wait_for(lock, kLook);
  }
  has_started_ = true;
  wish_notices();
  if (start_error_) return *start_error_;
  if (state_) return Done{};
  const auto call = page_.in_progress(CallPage::kOpening);
  return Error{
      ErrorKind::DeadlineExceeded,
      fmt::format("the drivers have not told what there is after {:.0f} s{}",
                  muster::seconds(options_.start_limit), call ? ": in " + call->function : "")};
}

void SamplerCollector::run() {
  for (;;) {
    if (start_sampler()) serve();
    bury();
    const auto wait = kRestartWaits[std::min(short_lives_, kRestartWaits.size() - 1)];
    if (!pause(wait)) return;
  }
}

bool SamplerCollector::start_sampler() {
  started_at_ = clock_.now();
  page_.clear();
  {
    const std::lock_guard lock(mutex_);
    ring_.clear();
    wish_notices();
  }
  auto sampler = SamplerProcess::start(program_, page_, ring_);
  if (!sampler) {
    fail_start(sampler.error());
    return false;
  }
  sampler_ = *std::move(sampler);
  const std::lock_guard lock(mutex_);
  const Watch watch{.nvml_libraries = options_.nvml_libraries,
                    .root = options_.root.string(),
                    .simulated = options_.simulated,
                    .periods = options_.periods,
                    .left_out = left_out_};
  outgoing_.insert(outgoing_.begin(), {TelemetryMessageType::Watch, 0, encode(watch)});
  if (has_viewer_) {
    outgoing_.push_back({TelemetryMessageType::Viewer, 0, encode(Viewer{has_viewer_})});
  }
  return true;
}

// Until the sampler's end, or ours.
void SamplerCollector::serve() {
  auto& channel = sampler_->channel();
  for (;;) {
    send_outgoing();
    const short events = channel.wants_write() ? POLLIN | POLLOUT : POLLIN;
    std::array<pollfd, 4> waits{{{channel.fd(), events, 0},
                                 {wake_.get(), POLLIN, 0},
                                 {sampler_->stderr_fd(), POLLIN, 0},
                                 {sampler_->exit_fd(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[1].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(wake_.get(), &count, sizeof count);
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
    }
    if (waits[2].revents != 0) sampler_->read_stderr();
    if ((waits[0].revents & POLLOUT) != 0 && !channel.flush()) return;
    if ((waits[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      const auto more = channel.read_available(
          [this](const FrameHeader& header, std::span<const std::byte> bytes) {
            return on_frame(header, bytes);
          });
      if (!more || !*more) return;
    } else if (waits[3].revents != 0) {
      return;  // what it sent before its end is read
    }
    // Each frame is an occasion to take what is in the ring: Costs come often enough for it.
    if (!take_samples()) return;
  }
}

Status SamplerCollector::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  switch (static_cast<TelemetryMessageType>(header.type)) {
    case TelemetryMessageType::Machine:
      on_machine(MUSTER_TRY(decode_machine(payload)));
      return Done{};
    case TelemetryMessageType::Samples:
      return Done{};  // they are taken after the frames
    case TelemetryMessageType::Events:
      return on_events(payload);
    case TelemetryMessageType::Edges:
      MUSTER_TRY(take_samples());  // those of the visits before the search are there first
      return on_edges(header.id, payload);
    case TelemetryMessageType::Costs: {
      auto costs = MUSTER_TRY(decode_costs(payload));
      const std::lock_guard lock(mutex_);
      if (state_) state_->set_costs(std::move(costs));
      return Done{};
    }
    case TelemetryMessageType::Refused:
      fail_start(MUSTER_TRY(decode_failed(payload)).error);
      return Done{};
    default:
      return Error{ErrorKind::Corrupt,
                   fmt::format("the sampler sent a message of unknown type: {}", header.type)};
  }
}

void SamplerCollector::on_machine(WatchedMachine machine) {
  sampler_->read_stderr();
  const auto words = sampler_->last_words();
  if (!state_ && machine.gpu_absent_reason && !options_.nvml_libraries.empty() && !words.empty()) {
    // A library that was named, and has something to say about why it does not work.
    fail_start({ErrorKind::InvalidArgument, words});
    return;
  }
  const std::lock_guard lock(mutex_);
  known_devices_.clear();
  if (!state_) {
    for (std::uint32_t i = 0; i < machine.devices.size(); ++i) known_devices_.emplace_back(i);
    strikes_.assign(machine.devices.size(), 0);
    state_.emplace(std::move(machine), TelemetryState::Options{options_.periods, options_.history});
  } else {
    const auto& known = state_->machine().devices;
    for (std::uint32_t i = 0; i < known.size(); ++i) state_->set_listed(i, false);
    for (const auto& identity : machine.devices) {
      const auto found = std::ranges::find(known, device_key(identity), device_key);
      known_devices_.emplace_back();
      if (found == known.end()) continue;  // a new one: the list that was told stays as it is
      known_devices_.back() = static_cast<std::uint32_t>(found - known.begin());
      state_->set_listed(*known_devices_.back(), true);
    }
  }
  state_->sampler_started(static_cast<std::uint32_t>(sampler_->pid()));
  changed_.notify_all();
}

std::optional<std::uint32_t> SamplerCollector::known_device(std::uint32_t device) const {
  return device < known_devices_.size() ? known_devices_[device] : std::nullopt;
}

// Of the loop's thread: with subscribers, it alone takes samples, and they get each of them.
Status SamplerCollector::take_samples() {
  std::vector<DeviceSample> samples;
  {
    const std::lock_guard lock(mutex_);
    MUSTER_TRY(drain(has_subscribers_ ? &samples : nullptr));
    changed_.notify_all();
  }
  if (samples.empty()) return Done{};
  const MutexLock lock(subscribers_mutex_);
  for (const auto& on_sample : subscribers_) {
    for (const auto& sample : samples) on_sample(sample);
  }
  return Done{};
}

// Takes what is in the ring into the state, and to `taken` unless it is nullptr. Called under the
// lock.
Status SamplerCollector::drain(std::vector<DeviceSample>* taken) const {
  if (known_devices_.empty()) return Done{};  // whose they are comes with Machine
  ring_.begin_taking();
  while (MUSTER_TRY(ring_.take(record_))) {
    auto samples = MUSTER_TRY(decode_samples(record_));
    for (auto& sample : samples) {
      const auto device = known_device(sample.device);
      if (!device) continue;
      sample.device = *device;
      state_->add(sample);
      if (taken != nullptr) taken->push_back(std::move(sample));
    }
  }
  return Done{};
}

// Samples are told of while somebody waits for them. Called under the lock.
void SamplerCollector::wish_notices() { ring_.wish_notices(!has_started_ || has_subscribers_); }

// A frame may be late, so the wall clock of an event is found from how long ago it happened.
Status SamplerCollector::on_events(std::span<const std::byte> payload) {
  const auto events = MUSTER_TRY(decode_events(payload));
  const std::lock_guard lock(mutex_);
  for (auto event : events) {
    const auto device = known_device(event.device);
    if (!device) continue;
    event.device = *device;
    state_->add(event, unix_seconds() - muster::seconds(clock_.now() - event.at));
  }
  return Done{};
}

Status SamplerCollector::on_edges(std::uint64_t id, std::span<const std::byte> payload) {
  auto edges = MUSTER_TRY(decode_edges(payload));
  const std::lock_guard lock(mutex_);
  // Who asked may have given up.
  if (open_searches_.erase(id) == 0) return Done{};
  std::erase_if(edges, [this](EdgeFound& edge) {
    const auto device = known_device(edge.device);
    if (device) edge.device = *device;
    return !device;
  });
  answers_[id] = std::move(edges);
  changed_.notify_all();
  return Done{};
}

void SamplerCollector::send_outgoing() {
  std::vector<Outgoing> messages;
  {
    const std::lock_guard lock(mutex_);
    messages = std::exchange(outgoing_, {});
  }
  for (auto& message : messages) {
    // A sampler that is gone is seen by the end of the stream.
    (void)sampler_->channel().send(static_cast<std::uint8_t>(message.type), message.id,
                                   std::move(message.payload));
  }
}

void SamplerCollector::bury() {
  if (sampler_ == nullptr) {
    ++short_lives_;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) {
      sampler_.reset();
      return;
    }
  }
  sampler_->read_stderr();
  const auto death = sampler_->reap();
  const auto words = sampler_->last_words();
  sampler_.reset();
  short_lives_ = clock_.now() - started_at_ >= kLongLife ? 0 : short_lives_ + 1;
  const auto call = page_.in_progress(CallPage::kOpening);
  fail_start({ErrorKind::Unavailable,
              fmt::format("the sampler ended at once: {}{}{}", death.reason,
                          call ? " in " + call->function : "", words.empty() ? "" : ": " + words)});
  (void)take_samples();
  const std::lock_guard lock(mutex_);
  if (!state_) return;
  blame(death);
  known_devices_.clear();
  state_->sampler_died();
  for (const auto id : std::exchange(open_searches_, {})) answers_[id] = std::nullopt;
  changed_.notify_all();
}

// A device whose call ended the sampler: the one whose thread raised the signal, or the only one
// that was in a call. Two strikes, and it is left out.
void SamplerCollector::blame(const SamplerDeath& death) {
  if (!death.is_own_fault) return;
  auto slot = page_.crashed_slot();
  for (std::uint32_t i = 0; !slot && i < known_devices_.size(); ++i) {
    if (page_.in_progress(i)) slot = i;
  }
  const auto device = slot ? known_device(*slot) : std::nullopt;
  if (!device || ++strikes_[*device] < kStrikesMax) return;
  const auto call = page_.in_progress(*slot);
  left_out_.push_back(device_key(state_->machine().devices[*device]));
  state_->leave_out(*device, fmt::format("left out: {} ended the sampler {} times ({})",
                                         call ? call->function : "a call of its driver",
                                         strikes_[*device], death.reason));
}

// The first error counts, and only before there is anything to show.
void SamplerCollector::fail_start(Error error) {
  const std::lock_guard lock(mutex_);
  if (state_ || start_error_) return;
  start_error_ = std::move(error);
  changed_.notify_all();
}

bool SamplerCollector::pause(Duration time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return is_stopping_ || start_error_; });
}

void SamplerCollector::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void SamplerCollector::send_later(Outgoing message) {
  outgoing_.push_back(std::move(message));
  wake();
}

// Called under the lock.
TelemetryState::CallOf SamplerCollector::call_of() const {
  return [this](std::uint32_t device) -> std::optional<CallInProgress> {
    const auto slot = std::ranges::find(known_devices_, std::optional(device));
    if (slot == known_devices_.end()) return std::nullopt;
    return page_.in_progress(static_cast<std::uint32_t>(slot - known_devices_.begin()));
  };
}

TelemetrySnapshot SamplerCollector::snapshot() const {
  const std::lock_guard lock(mutex_);
  // What is broken there stays, and the loop ends the sampler for it.
  if (!has_subscribers_) (void)drain(nullptr);
  return state_->snapshot(clock_.now(), unix_seconds(), call_of());
}

std::vector<HistoryPoint> SamplerCollector::history(std::uint32_t device, Reading reading,
                                                    Duration since) const {
  const std::lock_guard lock(mutex_);
  if (!has_subscribers_) (void)drain(nullptr);
  return state_->history(device, reading, clock_.now() - since);
}

void SamplerCollector::subscribe(std::function<void(const DeviceSample&)> on_sample) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_subscribers_) (void)drain(nullptr);  // those before now are not for it
    has_subscribers_ = true;
    wish_notices();
  }
  const MutexLock lock(subscribers_mutex_);
  subscribers_.push_back(std::move(on_sample));
}

Result<std::vector<EnergyEdge>> SamplerCollector::find_edges(Duration limit) {
  std::unique_lock lock(mutex_);
  const auto id = next_search_++;
  open_searches_.insert(id);
  send_later({TelemetryMessageType::FindEdges, id, encode(FindEdges{limit})});
  changed_.wait_for(lock, limit + kAnswerGrace, [&] { return answers_.contains(id); });
  open_searches_.erase(id);
  const auto answer = answers_.extract(id);
  if (!answer) return Error{ErrorKind::DeadlineExceeded, "the sampler did not find edges in time"};
  if (!answer.mapped()) return Error{ErrorKind::Unavailable, "the sampler ended meanwhile"};
  std::vector<EnergyEdge> edges;
  for (const auto& edge : *answer.mapped()) {
    edges.push_back({edge.device, edge.at, edge.joules, edge.within, edge.missing_reason});
  }
  return edges;
}

void SamplerCollector::set_viewer(bool is_there) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(has_viewer_, is_there) == is_there) return;
  send_later({TelemetryMessageType::Viewer, 0, encode(Viewer{is_there})});
}

}  // namespace

Result<std::unique_ptr<Collector>> Collector::start(const CollectorOptions& options,
                                                    const Clock& clock,
                                                    const std::function<bool()>& is_cancelled) {
  auto program = MUSTER_TRY(SamplerProgram::open(options.program));
  auto page = MUSTER_TRY(CallPage::create());
  auto ring = MUSTER_TRY(SampleRing::create());
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return system_error("collector", "create an eventfd", errno);
  auto collector = std::make_unique<SamplerCollector>(
      options, std::move(program), clock, std::move(page), std::move(ring), std::move(wake));
  MUSTER_TRY(collector->begin(is_cancelled));
  return std::unique_ptr<Collector>(std::move(collector));
}

}  // namespace muster
