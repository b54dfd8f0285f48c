// Everything that a worker does is seen by one epoll_wait: frames and their end, its exit, what it
// prints. What a worker had sent when its end is noticed is read before the end is believed.

#include "coordinator/group_runner.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace muster {
namespace {

// A process that is killed is gone in milliseconds, unless a call holds it in the kernel.
constexpr Duration kEndAllowance = std::chrono::seconds(1);

constexpr std::uint32_t kSocket = 0;
constexpr std::uint32_t kExit = 1;
constexpr std::uint32_t kStderr = 2;
constexpr std::uint32_t kLiveness = 3;
constexpr std::uint32_t kWake = 4;

/// What epoll gives back of a descriptor.
struct EventSource {
  std::size_t group = 0;
  std::uint32_t serial = 0;  // which life of the group
  std::size_t member = 0;
  std::uint32_t part = kSocket;
};

// From the highest bit: 21 of the group, 32 of the serial, 8 of the member, 3 of the part.
std::uint64_t packed(const EventSource& source) {
  return (std::uint64_t{source.group} << 43) | (std::uint64_t{source.serial} << 11) |
         (std::uint64_t{source.member} << 3) | source.part;
}

EventSource unpacked(std::uint64_t data) {
  return {.group = data >> 43,
          .serial = static_cast<std::uint32_t>(data >> 11),
          .member = (data >> 3) & 0xFF,
          .part = static_cast<std::uint32_t>(data & 7)};
}

void add_to(int epoll, int fd, const EventSource& source) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = packed(source)}};
  (void)::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int timeout_ms(Duration duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<decltype(ms)>(ms, 0, 60'000));
}

}  // namespace

GroupRunner::GroupRunner(Options options, int wake_fd, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      groups_(options_.group_count) {
  for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].index = i;
  add_to(epoll_.get(), wake_fd, {.part = kWake});
}

GroupRunner::~GroupRunner() {
  for (auto& group : groups_) {
    if (group.processes) group.processes->kill();
  }
  const auto deadline = clock_.now() + kEndAllowance;
  for (auto& group : groups_) {
    if (group.processes && !group.processes->reap(deadline - clock_.now())) {
      group.processes->leave();
    }
  }
}

Result<std::vector<pid_t>> GroupRunner::start(std::size_t group,
                                              const std::vector<Device>& devices) {
  auto& started = groups_[group];
  started.processes = MUSTER_TRY(WorkerGroup::start(
      {.program = options_.program, .torch_root = options_.torch_root, .devices = devices}));
  ++started.serial;
  started.are_writes_watched.assign(devices.size(), false);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    EventSource source{.group = group, .serial = started.serial, .member = i};
    auto& process = started.processes->member(i);
    add_to(epoll_.get(), process.channel().fd(), source);
    source.part = kExit;
    add_to(epoll_.get(), process.exit_fd(), source);
    source.part = kStderr;
    add_to(epoll_.get(), process.stderr_fd(), source);
    source.part = kLiveness;
    add_to(epoll_.get(), process.liveness_fd(), source);
  }
  return started.processes->pids();
}

void GroupRunner::send(std::size_t group, MessageType type, std::uint64_t id,
                       std::vector<std::byte> payload) {
  auto& channel = groups_[group].processes->leader().channel();
  // Else one that is stopped would be sent more and more of them.
  if (type == MessageType::Expect && channel.wants_write()) return;
  // A failed send means a dead worker: the end of its stream is handled by the next step.
  (void)channel.send(static_cast<std::uint8_t>(type), id, std::move(payload));
}

void GroupRunner::end(std::size_t group, GroupEnding how) {
  if (how == GroupEnding::Kill) return groups_[group].processes->kill();
  groups_[group].processes->close();
}

std::optional<WorkerDeath> GroupRunner::reap(std::size_t group, Duration limit) {
  return groups_[group].processes->reap(limit);
}

std::string GroupRunner::last_output(std::size_t group,
                                     const std::function<void(const std::string&)>& on_line) {
  auto& processes = *groups_[group].processes;
  for (std::size_t i = 0; i < processes.size(); ++i) processes.member(i).read_stderr(on_line);
  return processes.last_output();
}

void GroupRunner::leave(std::size_t group) {
  groups_[group].processes->leave();
  groups_[group].processes.reset();
}

Status GroupRunner::wait(Duration limit) {
  const int count =
      ::epoll_wait(epoll_.get(), ready_.data(), static_cast<int>(ready_.size()), timeout_ms(limit));
  ready_count_ = static_cast<std::size_t>(std::max(count, 0));
  if (count < 0 && errno != EINTR) return system_error("workers", "wait for", errno);
  return Done{};
}

Status GroupRunner::handle(GroupProcessEvents& events) {
  const auto count = std::exchange(ready_count_, 0);
  had_only_parts_ = count > 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto source = unpacked(ready_[i].data.u64);
    // A socket that can be written again is for `watch_writes`, too.
    if (source.part != kSocket || ready_[i].events != EPOLLIN) had_only_parts_ = false;
    if (source.part == kWake) continue;
    auto& group = groups_[source.group];
    if (!group.processes || group.serial != source.serial) continue;
    MUSTER_TRY(on_event(group, source.member, source.part, ready_[i].events, events));
  }
  return Done{};
}

Status GroupRunner::on_event(Group& group, std::size_t member, std::uint32_t part,
                             std::uint32_t ready, GroupProcessEvents& events) {
  auto& process = group.processes->member(member);
  auto& channel = process.channel();
  if (part == kStderr) {
    process.read_stderr([&](const std::string& line) { events.on_line(group.index, line); });
    return Done{};
  }
  if (part == kSocket && (ready & EPOLLOUT) != 0 && channel.fd() >= 0) {
    // A failed write means a dead worker: its end of the stream is read below or next.
    (void)channel.flush();
  }
  if (part == kLiveness) process.close_liveness();
  if (channel.fd() >= 0) MUSTER_TRY(read_frames_of(group, member, events));
  if (part == kLiveness && channel.fd() >= 0) end_stream(group, member, events);
  if (part != kExit) return Done{};
  // It would be readable for ever. Where another process traces the worker and has not let it go,
  // the owner asks for its end again later.
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, process.exit_fd(), nullptr);
  group.processes->note_end(member);
  group.processes->kill_rest(member);
  events.on_exit(group.index);
  return Done{};
}

Status GroupRunner::read_frames_of(Group& group, std::size_t member, GroupProcessEvents& events) {
  const auto more = group.processes->member(member).channel().read_available(
      [&](const FrameHeader& header, std::span<const std::byte> payload) {
        had_only_parts_ = false;
        return events.on_frame(group.index, member, header, payload);
      });
  if (more && *more) return Done{};
  had_only_parts_ = false;
  if (!more && more.error().kind != ErrorKind::Unavailable) {
    return events.on_broken(group.index, more.error());
  }
  end_stream(group, member, events);
  return Done{};
}

// The process ends a moment later.
void GroupRunner::end_stream(Group& group, std::size_t member, GroupProcessEvents& events) {
  group.processes->note_end(member);
  group.processes->close();
  events.on_stream_end(group.index, group.processes->member(member).dying());
}

void GroupRunner::watch_writes() {
  for (auto& group : groups_) {
    if (!group.processes) continue;
    for (std::size_t i = 0; i < group.processes->size(); ++i) {
      const auto& channel = group.processes->member(i).channel();
      const bool is_wanted = channel.fd() >= 0 && channel.wants_write();
      if (channel.fd() < 0 || is_wanted == group.are_writes_watched[i]) continue;
      group.are_writes_watched[i] = is_wanted;
      const EventSource source{.group = group.index, .serial = group.serial, .member = i};
      epoll_event event{.events = is_wanted ? EPOLLIN | EPOLLOUT : std::uint32_t{EPOLLIN},
                        .data = {.u64 = packed(source)}};
      (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, channel.fd(), &event);
    }
  }
}

}  // namespace muster
