#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "coordinator/group_processes.h"
#include "coordinator/worker_group.h"

namespace muster {

/// The real processes behind GroupProcesses, and the one place where the fleet waits: an epoll
/// descriptor that holds their sockets, pidfds, stderr and liveness pipes.
///
/// Owner: the fleet's loop. The destructor kills what still runs, and waits a second for all of it
/// together. Threads: not thread-safe.
class GroupRunner final : public GroupProcesses {
 public:
  struct Options {
    std::filesystem::path program;
    std::filesystem::path torch_root;
    std::size_t group_count = 0;
  };

  /// wake_fd: watched beside the processes; that it is readable ends a `wait` and means nothing
  /// else.
  GroupRunner(Options options, int wake_fd, const Clock& clock);
  ~GroupRunner() override;

  Result<std::vector<pid_t>> start(std::size_t group, const std::vector<Device>& devices) override;
  void send(std::size_t group, MessageType type, std::uint64_t id,
            std::vector<std::byte> payload) override;
  void end(std::size_t group, GroupEnding how) override;
  std::optional<WorkerDeath> reap(std::size_t group, Duration limit) override;
  std::string last_output(std::size_t group,
                          const std::function<void(const std::string&)>& on_line) override;
  void leave(std::size_t group) override;

  /// Readable when `wait` would return at once.
  int wait_fd() const { return epoll_.get(); }

  /// Waits up to `limit` for something to happen; `handle` is for what has.
  ///
  /// Errors: those of the kernel.
  Status wait(Duration limit);

  /// Handles what the last `wait` has found: reads frames and lines, writes what did not fit
  /// before, and reports ends.
  ///
  /// Errors: those of GroupProcessEvents.
  Status handle(GroupProcessEvents& events);

  /// Whether all that the last `handle` has found were parts of frames that are not whole yet:
  /// nobody was told of anything, and nothing follows from it.
  bool had_only_parts() const { return had_only_parts_; }

  /// Reads what the leader has sent, without asking whether it has. Errors: as `handle`.
  Status read_frames(std::size_t group, GroupProcessEvents& events) {
    return read_frames_of(groups_[group], kLeader, events);
  }

  /// Has `wait` report when sockets can be written of those that did not take all.
  void watch_writes();

 private:
  static constexpr std::size_t kLeader = 0;

  struct Group {
    std::size_t index = 0;
    std::unique_ptr<WorkerGroup> processes;  // null: none runs
    std::uint32_t serial = 0;                // events of an earlier life are passed over
    std::vector<bool> are_writes_watched;    // by member
  };

  Status on_event(Group& group, std::size_t member, std::uint32_t part, std::uint32_t ready,
                  GroupProcessEvents& events);
  Status read_frames_of(Group& group, std::size_t member, GroupProcessEvents& events);
  void end_stream(Group& group, std::size_t member, GroupProcessEvents& events);

  const Options options_;
  const Clock& clock_;
  UniqueFd epoll_;
  std::vector<Group> groups_;
  std::array<epoll_event, 64> ready_{};
  std::size_t ready_count_ = 0;
  bool had_only_parts_ = false;
};

}  // namespace muster
