#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/group_processes.h"
#include "coordinator/worker_groups.h"

namespace muster {

/// A clock that stands still until it is told how much time has passed.
class HandClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void pass(Duration duration) { now_ += duration; }

 private:
  TimePoint now_{std::chrono::hours(1)};
};

/// Worker groups without processes: they do what a test says, and keep what they are sent.
class FakeWorkerGroups final : public WorkerGroups {
 public:
  struct Told {
    std::size_t group = 0;
    MessageType type = MessageType::Load;
    std::vector<std::byte> payload{};
  };
  struct Sent {
    std::size_t group = 0;
    SentFrame frame;
    Batch batch;
  };

  FakeWorkerGroups(std::size_t count, const Clock& clock) : clock_(clock), groups_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      auto& life = groups_[i].life;
      Device device;
      device.index = static_cast<std::uint32_t>(i);
      life.devices = {device};
      life.name = device.name();
      life.engine_class = "one";
      life.serial = 1;
      life.has_processes = life.is_greeted = true;
    }
  }

  const GroupLife& life(std::size_t group) const override { return groups_[group].life; }
  const SentFrames& sent(std::size_t group) const override { return groups_[group].sent; }
  GroupHealth& health(std::size_t group) override { return groups_[group].health; }
  void tell(std::size_t group, MessageType type, std::vector<std::byte> payload) override {
    told.push_back({group, type, std::move(payload)});
  }
  std::uint64_t send(std::size_t group, SentFrame frame, std::vector<std::byte> payload) override {
    frame.id = next_frame_++;
    frame.sent_at = clock_.now();
    groups_[group].sent.push(frame, clock_.now());
    frames.push_back({group, frame, *decode_batch(payload)});
    return frame.id;
  }
  void convict(std::size_t group, const std::string& reason) override {
    convicted[group] = reason;
    groups_[group].life.is_quarantined = true;
    groups_[group].life.end_by = clock_.now();
  }

  GroupLife& life_of(std::size_t group) { return groups_[group].life; }
  SentFrames& sent_of(std::size_t group) { return groups_[group].sent; }

  /// What the group was told by messages of this type.
  std::size_t told_count(std::size_t group, MessageType type) const {
    return static_cast<std::size_t>(std::count_if(
        told.begin(), told.end(),
        [&](const Told& message) { return message.group == group && message.type == type; }));
  }

  /// The newest frame that it was sent.
  const Sent& last_of(std::size_t group) const {
    return *std::find_if(frames.rbegin(), frames.rend(),
                         [group](const Sent& sent) { return sent.group == group; });
  }

  std::vector<Told> told;
  std::vector<Sent> frames;
  std::map<std::size_t, std::string> convicted;

 private:
  struct Group {
    GroupLife life;
    SentFrames sent;
    GroupHealth health;
  };

  const Clock& clock_;
  std::vector<Group> groups_;
  std::uint64_t next_frame_ = 1;
};

/// Processes that run, end and speak as a test says.
class FakeProcesses final : public GroupProcesses {
 public:
  explicit FakeProcesses(std::size_t group_count) : groups(group_count) {}

  Result<std::vector<pid_t>> start(std::size_t group, const std::vector<Device>& devices) override {
    if (start_error) return *start_error;
    auto& started = groups[group];
    ++started.start_count;
    started.endings.clear();
    started.death.reset();
    std::vector<pid_t> pids;
    for (std::size_t i = 0; i < devices.size(); ++i) pids.push_back(next_pid_++);
    return pids;
  }
  void send(std::size_t group, MessageType type, std::uint64_t id,
            std::vector<std::byte>) override {
    groups[group].sent.emplace_back(type, id);
  }
  void end(std::size_t group, GroupEnding how) override { groups[group].endings.push_back(how); }
  std::optional<WorkerDeath> reap(std::size_t group, Duration) override {
    return groups[group].death;
  }
  std::string last_output(std::size_t group,
                          const std::function<void(const std::string&)>&) override {
    return groups[group].output;
  }
  void leave(std::size_t group) override { ++groups[group].left_count; }

  struct Group {
    std::size_t start_count = 0;
    std::vector<std::pair<MessageType, std::uint64_t>> sent{};
    std::vector<GroupEnding> endings{};  // of this life
    std::optional<WorkerDeath> death{};  // what `reap` returns; nullopt: it runs
    std::string output{};
    std::size_t left_count = 0;
  };

  std::vector<Group> groups;
  std::optional<Error> start_error;

 private:
  pid_t next_pid_ = 100;
};

}  // namespace muster
