#include "coordinator/worker_fleet.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace muster {
namespace {

// A gap between two steps that only a stopped parent (Ctrl-Z, a sleeping laptop) explains.
constexpr Duration kParentPause = std::chrono::seconds(2);
constexpr Duration kEndAllowance = std::chrono::seconds(1);
// Deaths after which a server no longer waits at its start for a device to greet.
constexpr std::uint32_t kStartsWaitedFor = 3;

constexpr std::uint32_t kSocket = 0;
constexpr std::uint32_t kExit = 1;
constexpr std::uint32_t kStderr = 2;
constexpr std::uint32_t kWake = 3;

// What epoll gives back: which slot, which of its processes, which descriptor.
std::uint64_t event_data(std::size_t slot, std::uint32_t serial, std::uint32_t part) {
  return (std::uint64_t{slot} << 34) | (std::uint64_t{serial} << 2) | part;
}

void add_to(int epoll, int fd, std::uint64_t data) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = data}};
  (void)::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

Error cancelled_error() { return Error{ErrorKind::Cancelled, "cancelled"}; }

int timeout_ms(Duration duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, 60'000));
}

}  // namespace

Result<std::unique_ptr<Fleet>> Fleet::start(FleetOptions options, FleetEvents events,
                                            const Clock& clock) {
  auto fleet = std::make_unique<WorkerFleet>(std::move(options), std::move(events), clock);
  MUSTER_TRY(fleet->start_workers());
  return std::unique_ptr<Fleet>(std::move(fleet));
}

WorkerFleet::WorkerFleet(FleetOptions options, FleetEvents events, const Clock& clock)
    : options_(std::move(options)),
      events_(std::move(events)),
      clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      dispatcher_(options_.dispatch, options_.devices.size()),
      due_(TimePoint::max()) {
  add_to(epoll_.get(), wake_.get(), event_data(0, 0, kWake));
  slots_.reserve(options_.devices.size());
  for (std::size_t i = 0; i < options_.devices.size(); ++i) {
    auto& slot = slots_.emplace_back(options_.batch_tokens, options_.gives_up);
    slot.device = options_.devices[i];
    slot.total.device = slot.device;
    slot.total.name = slot.device.name();
    const auto weight = options_.weights.find(i);
    if (weight != options_.weights.end()) slot.weight = weight->second;
  }
}

WorkerFleet::~WorkerFleet() {
  for (auto& slot : slots_) {
    if (slot.process) slot.process->kill();
  }
  const auto deadline = clock_.now() + kEndAllowance;
  for (auto& slot : slots_) {
    if (slot.process && !slot.process->reap(deadline - clock_.now())) slot.process->leave();
  }
}

Status WorkerFleet::start_workers() {
  for (auto& slot : slots_) MUSTER_TRY(start_worker(slot));
  return Done{};
}

Status WorkerFleet::start_worker(WorkerSlot& slot) {
  slot.restart_at.reset();
  slot.process = MUSTER_TRY(WorkerProcess::start({.program = options_.worker_program,
                                                  .torch_root = options_.torch_root,
                                                  .device = slot.device}));
  ++slot.serial;
  slot.is_greeted = slot.is_probing = slot.was_ready = false;
  slot.end_reason = EndReason::None;
  slot.end_by.reset();
  slot.is_write_watched = false;
  slot.last_sign = clock_.now();
  slot.health.forget_slowness();
  const auto index = index_of(slot);
  add_to(epoll_.get(), slot.process->channel().fd(), event_data(index, slot.serial, kSocket));
  add_to(epoll_.get(), slot.process->exit_fd(), event_data(index, slot.serial, kExit));
  add_to(epoll_.get(), slot.process->stderr_fd(), event_data(index, slot.serial, kStderr));
  changed();
  return Done{};
}

void WorkerFleet::watch_writes(WorkerSlot& slot) {
  if (!slot.is_alive() || slot.process->channel().wants_write() == slot.is_write_watched) return;
  slot.is_write_watched = !slot.is_write_watched;
  epoll_event event{.events = slot.is_write_watched ? EPOLLIN | EPOLLOUT : std::uint32_t{EPOLLIN},
                    .data = {.u64 = event_data(index_of(slot), slot.serial, kSocket)}};
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, slot.process->channel().fd(), &event);
}

void WorkerFleet::wake() {
  if (is_wake_told_ || is_in_step_) return;
  is_awake_ = is_wake_told_ = true;
  constexpr std::uint64_t kOne = 1;
  (void)!::write(wake_.get(), &kOne, sizeof kOne);
}

Result<std::vector<std::string>> WorkerFleet::wait_for_greetings(
    const std::function<bool()>& cancelled) {
  const auto is_waited_for = [this](const WorkerSlot& slot) {
    if (slot.is_greeted || slot.is_given_up || slot.goal != Goal::Serve) return false;
    return options_.gives_up || slot.restarts.failed_start_count() < kStartsWaitedFor;
  };
  while (std::any_of(slots_.begin(), slots_.end(), is_waited_for)) {
    if (cancelled()) return cancelled_error();
    MUSTER_TRY(step(std::chrono::milliseconds(100)));
  }
  std::vector<std::string> classes;
  for (const auto& slot : slots_) {
    if (slot.engine_class.empty()) continue;
    if (std::find(classes.begin(), classes.end(), slot.engine_class) == classes.end()) {
      classes.push_back(slot.engine_class);
    }
  }
  if (classes.empty()) return no_device_error();
  return classes;
}

Error WorkerFleet::no_device_error() const {
  if (slots_.empty()) return {ErrorKind::Unavailable, "no device can work: none was named"};
  const auto& first = slots_.front();
  const auto has_load_error = [](const WorkerSlot& slot) { return slot.load_error.has_value(); };
  if (std::all_of(slots_.begin(), slots_.end(), has_load_error)) return *first.load_error;
  return {ErrorKind::Unavailable,
          fmt::format("no device can work: {}: {}", first.total.name, first.reason)};
}

Result<ProbeVerdict> WorkerFleet::probe(const Probe& probe,
                                        const std::function<bool()>& cancelled) {
  for (;;) {
    // One at a time, also when an earlier device greets while a later one measures already.
    const bool is_asked = std::any_of(slots_.begin(), slots_.end(),
                                      [](const WorkerSlot& slot) { return slot.is_probing; });
    const auto free = std::find_if(slots_.begin(), slots_.end(), [](const WorkerSlot& slot) {
      return slot.is_alive() && slot.is_greeted && slot.goal == Goal::Serve && !slot.is_quarantined;
    });
    if (!is_asked && free != slots_.end()) {
      Probe request = probe;
      request.model.device = free->device.kind;
      request.cpus = free->device.cpus;
      free->is_probing = true;
      free->last_sign = clock_.now();
      send(*free, MessageType::Probe, 0, encode(request));
      sync(*free);
    }
    if (cancelled()) return cancelled_error();
    MUSTER_TRY(step(std::chrono::milliseconds(100)));
    if (verdict_) return *std::exchange(verdict_, std::nullopt);
  }
}

Status WorkerFleet::step(Duration timeout) {
  if (std::exchange(is_wake_told_, false)) {
    std::uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
  }
  if (std::exchange(is_awake_, false)) timeout = Duration{0};
  is_in_step_ = true;
  // What has come goes first: somebody waits for these rows.
  auto waited = wait(timeout);
  if (waited) waited = check_time();
  is_in_step_ = false;
  MUSTER_TRY(std::move(waited));
  settle();
  finish_checks(clock_.now());
  if (std::exchange(has_changed_, false) && events_.on_change) events_.on_change();
  due_ = next_deadline();
  const auto is_given_up = [](const WorkerSlot& slot) { return slot.is_given_up; };
  if (options_.gives_up && std::all_of(slots_.begin(), slots_.end(), is_given_up)) {
    return no_device_error();
  }
  return Done{};
}

void WorkerFleet::place_submitted() {
  is_awake_ = is_wake_told_;  // what was told of is for `step`
  deliver_refusals();
  feed();
  for (auto& slot : slots_) watch_writes(slot);
  due_ = next_deadline();
}

Status WorkerFleet::wait(Duration timeout) {
  std::array<epoll_event, 64> ready{};
  const auto begun_at = clock_.now();
  auto limit = Duration{0};
  if (timeout > limit) limit = std::clamp(next_deadline() - begun_at, limit, timeout);
  if (limit == Duration{0} && MUSTER_TRY(read_only_answer())) {
    forgive_pause(begun_at, std::max(due_, begun_at));
    return Done{};
  }
  const int count =
      ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout_ms(limit));
  if (count < 0 && errno != EINTR) return system_error("workers", "wait for", errno);
  forgive_pause(clock_.now(), std::max(due_, begun_at + limit));
  for (int i = 0; i < count; ++i) {
    const auto data = ready[static_cast<std::size_t>(i)].data.u64;
    const auto part = static_cast<std::uint32_t>(data & 3);
    if (part == kWake) continue;
    auto& slot = slots_[data >> 34];
    if (!slot.process || slot.serial != static_cast<std::uint32_t>(data >> 2)) continue;
    MUSTER_TRY(on_event(slot, part, ready[static_cast<std::size_t>(i)].events));
  }
  return Done{};
}

// On an idle machine what has come is the answer to the only batch: it is read without a question
// for what it is. Of anything else `wait_fd` tells again.
Result<bool> WorkerFleet::read_only_answer() {
  if (texts_.size() != 1) return false;
  auto& slot = slots_[last_fed_];
  if (!slot.is_alive() || slot.in_flight.size() != 1) return false;
  MUSTER_TRY(read_frames_of(slot));
  return slot.in_flight.empty();
}

void WorkerFleet::forgive_pause(TimePoint now, TimePoint due) {
  if (due == TimePoint::max() || now - due <= kParentPause) return;
  for (auto& slot : slots_) {
    slot.last_sign = now;
    judge_from_now(slot);
  }
}

Status WorkerFleet::on_event(WorkerSlot& slot, std::uint32_t part, std::uint32_t events) {
  if (part == kStderr) {
    read_stderr_of(slot);
    return Done{};
  }
  if (part == kSocket && (events & EPOLLOUT) != 0 && slot.is_alive()) {
    // A failed write means a dead worker: its end of the stream is read below or next.
    (void)slot.process->channel().flush();
  }
  // What a dying worker has still sent is read before its end is believed.
  if (slot.process->channel().fd() >= 0) MUSTER_TRY(read_frames_of(slot));
  return part == kExit ? on_worker_end(slot) : Done{};
}

Status WorkerFleet::read_frames_of(WorkerSlot& slot) {
  const auto more = slot.process->channel().read_available(
      [&](const FrameHeader& header, std::span<const std::byte> payload) {
        return on_frame(slot, header, payload);
      });
  if (more && *more) return Done{};
  if (!more && more.error().kind != ErrorKind::Unavailable) return on_fault(slot, more.error());
  // The end of the stream: the process ends a moment later, and then one can tell why.
  slot.process->close();
  if (!slot.end_by) slot.end_by = clock_.now() + kEndAllowance;
  sync(slot);
  return Done{};
}

Status WorkerFleet::on_fault(WorkerSlot& slot, const Error& error) {
  // One of another build is told at the start; later it is one device that fails, not all.
  if (error.kind == ErrorKind::Unsupported && !has_ever_greeted_) return error;
  notice(slot, fmt::format("{}; it is killed", error.message));
  slot.is_at_fault = true;
  end_worker(slot, EndReason::Fault, error.message, WorkerEnd::Innocent);
  return Done{};
}

void WorkerFleet::read_stderr_of(WorkerSlot& slot) {
  slot.process->read_stderr([&](const std::string& line) {
    if (events_.on_notice) {
      events_.on_notice(fmt::format("[{}] {}", slot.total.name, line), index_of(slot));
    }
  });
}

Status WorkerFleet::check_time() {
  const auto now = clock_.now();
  for (auto& slot : slots_) {
    if (slot.restart_at && now >= *slot.restart_at) {
      ++slot.total.restart_count;
      const auto started = start_worker(slot);
      if (!started && options_.gives_up) return started.error();
      if (!started) {
        slot.reason = started.error().message;
        const auto delay = slot.restarts.on_death(now, {.was_ready = false, .is_own_fault = true});
        slot.restart_at = now + delay.value_or(Duration{0});
      }
    }
    if (slot.process && slot.end_by && now >= *slot.end_by) kill_again(slot, now);
    check_silence(slot, now);
    check_slowness(slot, now);
    watch_quarantine(slot, now);
  }
  // Whoever is told of a lost text may unload a model: no verdict is passed before all are known.
  std::vector<std::pair<ModelId, std::vector<CanaryVerdict>>> decided;
  for (auto& [id, model] : models_) decided.emplace_back(id, model.book.on_time(now));
  for (const auto& [id, verdicts] : decided) apply(id, verdicts);
  return Done{};
}

void WorkerFleet::settle() {
  deliver_refusals();
  const auto now = clock_.now();
  for (auto& slot : slots_) {
    drain_step(slot, now);
    if (slot.is_alive() && slot.is_greeted && !slot.is_probing && slot.goal == Goal::Serve) {
      load_step(slot);
      send_due_canaries(slot, now);
    }
    drop_leaving_models(slot);
  }
  release_last();
  feed();
  for (auto& slot : slots_) watch_writes(slot);
}

TimePoint WorkerFleet::next_deadline() const {
  const auto now = clock_.now();
  if (is_awake_) return now;
  // Far enough for any timeout, near enough that `deadline - now` cannot overflow.
  auto deadline = now + std::chrono::hours(1);
  for (const auto& slot : slots_) deadline = std::min(deadline, slot_deadline(slot, now));
  for (const auto& check : checks_) deadline = std::min(deadline, check.until);
  for (const auto& [id, model] : models_) {
    deadline = std::min(deadline, model.book.deadline().value_or(deadline));
  }
  return deadline;
}

std::size_t WorkerFleet::index_of(const WorkerSlot& slot) const {
  return static_cast<std::size_t>(&slot - slots_.data());
}

void WorkerFleet::notice(const WorkerSlot& slot, const std::string& message) {
  if (!events_.on_notice) return;
  events_.on_notice(fmt::format("{}: {}", slot.total.name, message), index_of(slot));
}

void WorkerFleet::changed() {
  has_changed_ = true;
  wake();
}

double WorkerFleet::stop() {
  for (auto& slot : slots_) {
    slot.restart_at.reset();
    slot.is_given_up = true;
    if (slot.process) slot.process->close();
  }
  // Twice for all together: to end by themselves, and to be gone once they were killed.
  for (const bool is_killed : {false, true}) {
    const auto deadline = clock_.now() + kEndAllowance;
    for (auto& slot : slots_) {
      if (!slot.process) continue;
      if (const auto death = slot.process->reap(deadline - clock_.now())) {
        reaped_cpu_seconds_ += death->cpu_seconds;
        slot.process.reset();
      } else if (!is_killed) {
        slot.process->kill();
      }
    }
  }
  for (auto& slot : slots_) {
    if (!slot.process) continue;
    notice(slot, fmt::format("its worker, process {}, was killed and does not end: it is left to "
                             "the system",
                             slot.process->pid()));
    slot.process->leave();
    slot.process.reset();
  }
  return reaped_cpu_seconds_;
}

}  // namespace muster
