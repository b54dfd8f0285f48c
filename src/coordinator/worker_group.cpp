// A group lives as long as all of its members do, and is dead when all of them are. In between its
// owner kills those that are left. How the member ended that was the cause is how the group did:
// the others ended only for it.

#include "coordinator/worker_group.h"

#include <utility>

namespace muster {

Result<std::unique_ptr<WorkerGroup>> WorkerGroup::start(const Options& options) {
  std::unique_ptr<WorkerGroup> group(new WorkerGroup);
  for (const auto& device : options.devices) {
    // Where this one cannot be started, the destructor ends those before it.
    auto process = MUSTER_TRY(WorkerProcess::start(
        {.program = options.program, .torch_root = options.torch_root, .device = device}));
    group->members_.push_back({.process = std::move(process)});
  }
  return group;
}

std::vector<pid_t> WorkerGroup::pids() const {
  std::vector<pid_t> pids;
  for (const auto& member : members_) pids.push_back(member.process->pid());
  return pids;
}

void WorkerGroup::close() {
  for (auto& member : members_) member.process->close();
}

void WorkerGroup::kill() {
  for (auto& member : members_) {
    if (!member.death) member.process->kill();
  }
}

void WorkerGroup::kill_rest(std::size_t member) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i != member && !members_[i].death) members_[i].process->kill();
  }
}

void WorkerGroup::note_end(std::size_t member) {
  if (!cause_) cause_ = member;
}

std::optional<WorkerDeath> WorkerGroup::reap(Duration limit) {
  const SteadyClock clock;
  const auto deadline = clock.now() + limit;
  double cpu_seconds = 0;
  bool is_any_left = false;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto& death = members_[i].death;
    if (!death) death = members_[i].process->reap(deadline - clock.now());
    is_any_left |= !death;
    if (!death) continue;
    note_end(i);
    cpu_seconds += death->cpu_seconds;
  }
  if (is_any_left) return std::nullopt;
  auto death = *members_[*cause_].death;
  death.cpu_seconds = cpu_seconds;
  return death;
}

const std::string& WorkerGroup::last_output() const {
  return members_[cause_.value_or(0)].process->stderr_tail();
}

void WorkerGroup::leave() {
  for (auto& member : members_) member.process->leave();
}

}  // namespace muster
