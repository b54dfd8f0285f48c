#include "coordinator/coordinator.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace muster {
namespace {

// A worker links torch and greets in under half a second; a cold disk may take far longer.
constexpr Duration kStartAllowance = std::chrono::seconds(120);
// Packing the weights of a large model from a cold disk.
constexpr Duration kLoadAllowance = std::chrono::seconds(900);
// A gap between two steps that only a stopped parent (Ctrl-Z, a sleeping laptop) explains.
constexpr Duration kParentPause = std::chrono::seconds(2);
constexpr Duration kEndAllowance = std::chrono::seconds(1);

Error cancelled_error() { return Error{ErrorKind::Cancelled, "cancelled"}; }

int poll_timeout_ms(Duration duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, 60'000));
}

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::start(CoordinatorOptions options,
                                                        CoordinatorEvents events,
                                                        const Clock& clock) {
  std::unique_ptr<Coordinator> coordinator(
      new Coordinator(std::move(options), std::move(events), clock));
  for (auto& slot : coordinator->slots_) MUSTER_TRY(coordinator->start_worker(slot));
  return coordinator;
}

Coordinator::Coordinator(CoordinatorOptions options, CoordinatorEvents events, const Clock& clock)
    : options_(std::move(options)),
      events_(std::move(events)),
      clock_(clock),
      slots_(options_.devices.size()),
      last_step_(clock.now()) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].device = options_.devices[i];
    slots_[i].token_budget = options_.batch_tokens;
    slots_[i].total.name = slots_[i].device.name();
  }
}

Coordinator::~Coordinator() = default;

Result<std::vector<std::string>> Coordinator::wait_for_greetings(
    const std::function<bool()>& cancelled) {
  const auto is_starting = [](const Slot& slot) {
    return slot.state == State::Starting || slot.state == State::Waiting;
  };
  while (std::any_of(slots_.begin(), slots_.end(), is_starting)) {
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
  return classes;
}

Result<Verdict> Coordinator::probe(const Probe& probe, const std::function<bool()>& cancelled) {
  for (;;) {
    // One at a time, also when an earlier device greets while a later one measures already.
    const auto in_state = [this](State state) {
      return std::find_if(slots_.begin(), slots_.end(),
                          [state](const Slot& slot) { return slot.state == state; });
    };
    const auto asked = in_state(State::Greeted);
    if (in_state(State::Probing) == slots_.end() && asked != slots_.end()) {
      Probe request = probe;
      request.model.device = asked->device.kind;
      request.cpus = asked->device.cpus;
      asked->state = State::Probing;
      asked->last_sign = clock_.now();
      (void)asked->process->channel().send(static_cast<std::uint8_t>(MessageType::Probe), 0,
                                           encode(request));
    }
    if (cancelled()) return cancelled_error();
    MUSTER_TRY(step(std::chrono::milliseconds(100)));
    if (verdict_) return *std::exchange(verdict_, std::nullopt);
  }
}

void Coordinator::load(const Load& load) {
  load_ = load;
  for (auto& slot : slots_) {
    if (slot.state == State::Greeted) send_load(slot);
  }
}

void Coordinator::submit(const WorkItem& item, std::vector<std::uint32_t> ids) {
  ids_.emplace(item.key, std::move(ids));
  queue_.add(item);
}

Status Coordinator::step(Duration timeout) {
  feed();
  MUSTER_TRY(wait(timeout));
  MUSTER_TRY(check_time());
  feed();
  if (live_count() == 0) {
    return Error{ErrorKind::Unavailable,
                 fmt::format("no device can work: {}",
                             slots_.empty() ? "none was named" : slots_.front().last_words)};
  }
  return Done{};
}

Status Coordinator::wait(Duration timeout) {
  std::vector<pollfd> waits;
  std::vector<Slot*> owners;
  for (auto& slot : slots_) {
    if (!slot.process) continue;
    const auto wanted = slot.process->channel().wants_write() ? POLLIN | POLLOUT : POLLIN;
    waits.push_back({slot.process->channel().fd(), static_cast<short>(wanted), 0});
    waits.push_back({slot.process->exit_fd(), POLLIN, 0});
    waits.push_back({slot.process->stderr_fd(), POLLIN, 0});  // -1 is passed over by poll
    owners.push_back(&slot);
  }
  const auto limit = std::min(timeout, std::max(Duration{0}, next_deadline() - clock_.now()));
  if (::poll(waits.data(), waits.size(), poll_timeout_ms(limit)) < 0 && errno != EINTR) {
    return system_error("workers", "wait for", errno);
  }
  const auto now = clock_.now();
  if (now - last_step_ > timeout + kParentPause) {
    for (auto& slot : slots_) slot.last_sign = now;
  }
  last_step_ = now;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    auto& slot = *owners[i];
    auto& process = *slot.process;
    const auto on_line = [&](const std::string& line) {
      events_.on_notice(fmt::format("[{}] {}", slot.total.name, line));
    };
    if (waits[3 * i + 2].revents != 0) process.read_stderr(on_line);
    bool is_open = true;
    if ((waits[3 * i].revents & POLLOUT) != 0) is_open = process.channel().flush().has_value();
    // What a dying worker has still sent is read before its end is believed.
    if ((waits[3 * i].revents & (POLLIN | POLLHUP | POLLERR)) != 0 ||
        waits[3 * i + 1].revents != 0) {
      const auto more = process.channel().read_available(
          [&](const FrameHeader& header, std::span<const std::byte> payload) {
            return on_frame(slot, header, payload);
          });
      if (!more && more.error().kind != ErrorKind::Unavailable) return more.error();
      is_open = is_open && more && *more;
    }
    if (!is_open || waits[3 * i + 1].revents != 0) MUSTER_TRY(on_worker_end(slot));
  }
  return Done{};
}

Status Coordinator::check_time() {
  const auto now = clock_.now();
  for (auto& slot : slots_) {
    if (slot.state == State::Waiting && now >= slot.restart_at) {
      ++slot.total.restart_count;
      MUSTER_TRY(start_worker(slot));
    } else if (slot.process && now - slot.last_sign > silence_allowed(slot)) {
      events_.on_notice(fmt::format(
          "{}: no sign of life for {:.1f} s, where {:.1f} s are allowed; it is killed",
          slot.total.name, seconds(now - slot.last_sign), seconds(silence_allowed(slot))));
      slot.process->kill();
      slot.last_sign = now;  // its end is noticed by the next step
    }
  }
  return Done{};
}

Duration Coordinator::silence_allowed(const Slot& slot) const {
  switch (slot.state) {
    case State::Starting:
      return kStartAllowance;
    case State::Probing:
    case State::Loading:
      return kLoadAllowance;
    case State::Ready: {
      std::uint64_t tokens = 0;
      for (const auto& running : slot.in_flight)
        tokens = std::max(tokens, running.batch.token_count);
      return tokens > 0 ? slot.cost.silence_allowed(tokens) : Duration::max();
    }
    case State::Greeted:
    case State::Waiting:
    case State::GivenUp:
      break;
  }
  return Duration::max();
}

TimePoint Coordinator::next_deadline() const {
  auto deadline = TimePoint::max();
  for (const auto& slot : slots_) {
    if (slot.state == State::Waiting) deadline = std::min(deadline, slot.restart_at);
    const auto allowed = silence_allowed(slot);
    if (slot.process && allowed != Duration::max()) {
      deadline = std::min(deadline, slot.last_sign + allowed);
    }
  }
  // Far enough for any timeout, near enough that `deadline - now` cannot overflow.
  return std::min(deadline, clock_.now() + std::chrono::hours(1));
}

void Coordinator::feed() {
  // One batch for each slot's turn, so that the first device does not take all that waits.
  for (std::size_t round = 0;; ++round) {
    std::uint64_t free_count = 0;
    bool has_room = false;
    for (const auto& slot : slots_) {
      if (slot.state != State::Ready) continue;
      free_count += slot_count(slot);
      has_room |= slot.in_flight.size() < slot_count(slot);
    }
    if (!has_room || queue_.item_count() == 0) return;
    bool was_sent = false;
    for (auto& slot : slots_) {
      if (slot.state != State::Ready || slot.in_flight.size() > round ||
          slot.in_flight.size() >= slot_count(slot)) {
        continue;
      }
      auto batch = queue_.cut(index_of(slot), {.token_budget = slot.token_budget,
                                               .free_slot_count = free_count,
                                               .is_only_device = live_count() == 1});
      if (!batch) continue;
      send_batch(slot, std::move(*batch));
      was_sent = true;
    }
    const bool could_be_later_round =
        std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
          return slot.state == State::Ready && slot.in_flight.size() > round &&
                 slot.in_flight.size() < slot_count(slot);
        });
    if (!was_sent && !could_be_later_round) return;
  }
}

void Coordinator::send_batch(Slot& slot, WorkBatch batch) {
  Batch message;
  message.lengths.reserve(batch.items.size());
  message.ids.reserve(batch.token_count);
  for (const auto& item : batch.items) {
    const auto& ids = ids_.at(item.key);
    message.lengths.push_back(static_cast<std::uint32_t>(ids.size()));
    message.ids.insert(message.ids.end(), ids.begin(), ids.end());
  }
  const auto now = clock_.now();
  if (slot.in_flight.empty()) slot.last_sign = now;
  const auto id = batch.id;
  slot.in_flight.push_back({std::move(batch), now});
  // A failed send means a dead worker: its end-of-file is handled by the next step.
  (void)slot.process->channel().send(static_cast<std::uint8_t>(MessageType::Batch), id,
                                     encode(message));
}

bool Coordinator::is_hungry() const {
  if (queue_.item_count() > 0) return false;
  return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.state == State::Ready && slot.in_flight.size() < slot_count(slot);
  });
}

std::size_t Coordinator::index_of(const Slot& slot) const {
  return static_cast<std::size_t>(&slot - slots_.data());
}

std::size_t Coordinator::live_count() const {
  return static_cast<std::size_t>(std::count_if(
      slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.state != State::GivenUp; }));
}

std::vector<WorkerStatus> Coordinator::status() const {
  std::vector<WorkerStatus> result;
  for (const auto& slot : slots_) {
    auto status = slot.total;
    if (slot.first_ready_at) status.ready_seconds = seconds(clock_.now() - *slot.first_ready_at);
    status.state = slot.state == State::Ready                                 ? "ready"
                   : slot.state == State::GivenUp                             ? "given up"
                   : status.restart_count > 0 || slot.state == State::Waiting ? "restarting"
                                                                              : "starting";
    result.push_back(std::move(status));
  }
  return result;
}

double Coordinator::stop() {
  const auto deadline = clock_.now() + kEndAllowance;
  for (auto& slot : slots_) {
    if (slot.process) slot.process->close();
  }
  for (auto& slot : slots_) {
    if (!slot.process) continue;
    pollfd waiting{slot.process->exit_fd(), POLLIN, 0};
    const auto left = std::max(Duration{0}, deadline - clock_.now());
    if (::poll(&waiting, 1, poll_timeout_ms(left)) != 1) slot.process->kill();
    reaped_cpu_seconds_ += slot.process->reap().cpu_seconds;
    slot.process.reset();
    slot.state = State::GivenUp;
  }
  return reaped_cpu_seconds_;
}

}  // namespace muster
