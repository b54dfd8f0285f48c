// Starts of groups, and what they say of themselves. A frame that comes after a group was told to
// end is passed over: what it had is with others already.

#include "coordinator/worker_supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster {
namespace {

// A gap between two steps that only a stopped parent explains.
constexpr Duration kParentPause = std::chrono::milliseconds(250);
// From the end of its stream to the exit of a worker that ends by itself.
constexpr Duration kEndAllowance = std::chrono::seconds(1);
// For all workers to end by themselves when the fleet stops, and then to be gone once killed.
constexpr Duration kStopAllowance = std::chrono::seconds(1);

}  // namespace

WorkerSupervisor::WorkerSupervisor(Options options, Parts parts)
    : options_(std::move(options)), parts_(std::move(parts)) {
  for (const auto& devices : options_.groups) {
    auto& group = groups_.emplace_back();
    group.life.devices = devices;
    group.life.name = devices.front().name();
    group.health.restarts = RestartPolicy(options_.gives_up);
  }
  for (const auto index : options_.idle) groups_[index].life.is_idle = true;
}

Status WorkerSupervisor::start() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].life.is_idle) MUSTER_TRY(start_group(i));
  }
  return Done{};
}

// The serial number goes up, so that what belonged to an earlier life of the group can be
// recognised.
Status WorkerSupervisor::start_group(std::size_t index) {
  auto& group = groups_[index];
  auto& life = group.life;
  life.restart_at.reset();
  group.pids = MUSTER_TRY(parts_.processes.start(index, life.devices));
  group.have_greeted.assign(group.pids.size(), false);
  ++life.serial;
  life.has_processes = true;
  life.is_greeted = life.is_probing = life.was_ready = life.is_forgiven = false;
  life.end_reason = EndReason::None;
  life.end_by.reset();
  life.last_sign = group.started_at = parts_.clock.now();
  group.load_count = 0;
  group.health.speed.forget_slowness();
  parts_.signal.change();
  return Done{};
}

void WorkerSupervisor::tell(std::size_t group, MessageType type, std::vector<std::byte> payload) {
  if (type == MessageType::Load) {
    const auto now = parts_.clock.now();
    auto& its = groups_[group];
    its.life.last_sign = now;
    its.life.is_forgiven = false;
    if (its.load_count++ == 0) its.loading_since = now;
  }
  parts_.processes.send(group, type, 0, std::move(payload));
}

std::uint64_t WorkerSupervisor::send(std::size_t group, SentFrame frame,
                                     std::vector<std::byte> payload) {
  const auto now = parts_.clock.now();
  frame.id = next_frame_++;
  frame.sent_at = now;
  groups_[group].sent.push(frame, now);
  groups_[group].life.is_forgiven = false;
  parts_.processes.send(group, MessageType::Batch, frame.id, std::move(payload));
  return frame.id;
}

Status WorkerSupervisor::on_frame(std::size_t group, std::size_t member, const FrameHeader& header,
                                  std::span<const std::byte> payload) {
  auto& life = groups_[group].life;
  if (life.end_by) return Done{};
  life.last_sign = parts_.clock.now();
  life.is_forgiven = false;
  switch (static_cast<MessageType>(header.type)) {
    case MessageType::Hello:
      return on_hello(group, member, payload);
    case MessageType::Verdict:
      on_verdict(group, decode_verdict(payload));
      return Done{};
    default:
      return parts_.client.on_frame(group, header, payload);
  }
}

// A group counts as greeted when its last member has said so. The engine class must stay what it
// was: rows of two classes are not compared, and a job has named the class of its file. A server's
// device that has had no model yet may come with another one: a GPU that its driver could not open
// at first has no name in it.
Status WorkerSupervisor::on_hello(std::size_t index, std::size_t member,
                                  std::span<const std::byte> payload) {
  auto& group = groups_[index];
  auto& life = group.life;
  auto hello = MUSTER_TRY(decode_hello(payload));
  if (hello.protocol != Hello::kProtocol || hello.build != options_.build) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{} is of another build: it is {}, this is {}",
                             options_.worker_program, hello.build, options_.build)};
  }
  const bool is_first = std::find(group.have_greeted.begin(), group.have_greeted.end(), true) ==
                        group.have_greeted.end();
  const bool is_fixed = !life.engine_class.empty() &&
                        (!is_first || options_.gives_up || life.first_ready_at.has_value());
  if (is_fixed && life.engine_class != hello.engine_class) {
    return Error{ErrorKind::Unsupported,
                 fmt::format("{}: the engine changed between two starts: {} and {}", life.name,
                             life.engine_class, hello.engine_class)};
  }
  life.engine_class = std::move(hello.engine_class);
  group.have_greeted[member] = true;
  life.is_greeted = std::find(group.have_greeted.begin(), group.have_greeted.end(), false) ==
                    group.have_greeted.end();
  longest_greeting_ =
      std::max(longest_greeting_.value_or(Duration{0}), parts_.clock.now() - group.started_at);
  if (parts_.models.on(index).empty()) life.reason.clear();  // else when it has loaded
  parts_.signal.change();
  return Done{};
}

Status WorkerSupervisor::on_broken(std::size_t group, const Error& error) {
  // One of another build is reported at the start; later it is one device that fails, not all.
  if (error.kind == ErrorKind::Unsupported && !longest_greeting_) return error;
  notice(group, fmt::format("{}; it is killed", error.message));
  groups_[group].life.is_at_fault = true;
  end_group(group, EndReason::Fault, error.message, WorkerEnd::Innocent);
  return Done{};
}

// How it dies is told before the kernel has freed its memory, which may be gigabytes: what it had
// does not wait for that.
void WorkerSupervisor::on_stream_end(std::size_t group, const std::optional<WorkerDeath>& death) {
  auto& life = groups_[group].life;
  if (!life.end_by) life.end_by = parts_.clock.now() + kEndAllowance;
  const bool is_known = death && life.end_reason == EndReason::None;
  if (is_known && !life.is_quarantined) {
    life.reason = fmt::format("worker ended with {}", death->reason);
  }
  parts_.client.on_state(group);
  if (!is_known) return;
  life.lost_frame_count += groups_[group].sent.size();
  lose(group, death->is_own_fault ? WorkerEnd::Died : WorkerEnd::Innocent, death->reason);
  parts_.signal.change();
}

void WorkerSupervisor::on_line(std::size_t group, const std::string& line) {
  parts_.on_notice(fmt::format("[{}] {}", groups_[group].life.name, line), group);
}

// When this process was stopped, every worker looks silent for as long. Their clocks start anew
// instead: once for each thing that they are asked, so that an owner who always comes late still
// finds one that hangs.
void WorkerSupervisor::forgive_pause(TimePoint now, TimePoint due) {
  if (due == TimePoint::max() || now - due <= kParentPause) return;
  for (auto& group : groups_) {
    if (std::exchange(group.life.is_forgiven, true)) continue;
    group.life.last_sign = now;
    group.sent.restart_clocks(now);
  }
}

Status WorkerSupervisor::check_time(TimePoint now) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto& life = groups_[i].life;
    if (life.restart_at && now >= *life.restart_at) MUSTER_TRY(start_again(i, now));
    if (life.has_processes && life.end_by && now >= *life.end_by) kill_again(i, now);
    check_silence(i, now);
    check_slowness(i, now);
    watch_quarantine(i, now);
  }
  return Done{};
}

std::optional<SentFrame> WorkerSupervisor::take_sent(std::size_t group, std::uint64_t id) {
  return groups_[group].sent.take(id, parts_.clock.now());
}

void WorkerSupervisor::on_load_answered(std::size_t group, std::uint32_t lane_count) {
  auto& its = groups_[group];
  const auto now = parts_.clock.now();
  if (its.load_count > 0) {
    --its.load_count;
    its.sent.excuse(std::exchange(its.loading_since, now), now);
  }
  if (lane_count > 0) return its.sent.set_lane_count(lane_count);
  // How its last life ended is no longer why it does not serve.
  auto& life = its.life;
  if (!life.is_quarantined && life.goal == GroupGoal::Serve) life.reason.clear();
}

void WorkerSupervisor::on_model_ready(std::size_t group) {
  auto& life = groups_[group].life;
  if (!life.is_quarantined) life.reason.clear();
  life.was_ready = true;
  if (!life.first_ready_at) life.first_ready_at = parts_.clock.now();
}

void WorkerSupervisor::probe(std::size_t group, const Probe& probe) {
  auto& life = groups_[group].life;
  Probe request = probe;
  request.model.device = life.leader().kind;
  request.cpus = life.leader().cpus;
  life.is_probing = true;
  life.last_sign = parts_.clock.now();
  parts_.processes.send(group, MessageType::Probe, 0, encode(request));
  parts_.client.on_state(group);
}

void WorkerSupervisor::on_verdict(std::size_t group, Result<ProbeVerdict> verdict) {
  groups_[group].life.is_probing = false;
  verdict_ = std::move(verdict);
  parts_.client.on_state(group);
}

std::optional<Result<ProbeVerdict>> WorkerSupervisor::take_verdict() {
  return std::exchange(verdict_, std::nullopt);
}

double WorkerSupervisor::stop() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    auto& life = groups_[i].life;
    life.restart_at.reset();
    life.is_given_up = true;
    if (life.has_processes) parts_.processes.end(i, GroupEnding::EndOfStream);
  }
  const auto forget = [this](std::size_t i) {
    parts_.processes.leave(i);
    groups_[i].pids.clear();
    groups_[i].life.has_processes = false;
  };
  for (const bool is_killed : {false, true}) {
    const auto deadline = parts_.clock.now() + kStopAllowance;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (!groups_[i].life.has_processes) continue;
      if (const auto death = parts_.processes.reap(i, deadline - parts_.clock.now())) {
        reaped_cpu_seconds_ += death->cpu_seconds;
        forget(i);
      } else if (!is_killed) {
        parts_.processes.end(i, GroupEnding::Kill);
      }
    }
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].life.has_processes) continue;
    notice(i, fmt::format("its worker, process {}, was killed and does not end: it is left to "
                          "the system",
                          fmt::join(groups_[i].pids, ", ")));
    forget(i);
  }
  return reaped_cpu_seconds_;
}

void WorkerSupervisor::notice(std::size_t group, const std::string& sentence) const {
  parts_.on_notice(fmt::format("{}: {}", groups_[group].life.name, sentence), group);
}

bool WorkerSupervisor::are_all_given_up() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [](const Group& group) { return group.life.is_given_up; });
}

void WorkerSupervisor::describe(std::size_t group, GroupStatus& status) const {
  constexpr Duration kBackoffOfFailing = std::chrono::seconds(1);
  const auto& [life, sent, health, pids, greeted, started_at, load_count, loading_since] =
      groups_[group];
  status.name = life.name;
  for (std::size_t i = 0; i < life.devices.size(); ++i) {
    status.members.push_back({.device = life.devices[i],
                              .pid = pids.empty() ? std::nullopt : std::optional<pid_t>(pids[i])});
  }
  status.state = life.state(parts_.models.together(group));
  status.reason = life.reason;
  status.is_to_rest = life.goal == GroupGoal::Drain;
  const bool keeps_ending =
      !parts_.client.is_eligible(group) && health.restarts.backoff() >= kBackoffOfFailing;
  status.is_failing = life.is_given_up || life.fault || keeps_ending;
  status.is_asked_for = life.is_asked_for;
  status.engine_class = life.engine_class;
  status.lane_count = sent.lane_count();
  if (life.first_ready_at) {
    status.ready_seconds = seconds(parts_.clock.now() - *life.first_ready_at);
  }
  status.restart_count = life.restart_count;
  status.quarantine_count = life.quarantine_count;
  status.last_words = life.last_words;
}

}  // namespace muster
