#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/worker_process.h"
#include "spec/device.h"

namespace muster {

/// The processes that serve as one: the unit of placement, death, quarantine and restart. Today
/// every group has one member, which owns one device; what starts, feeds, judges and ends workers
/// does so for the group. The first member is the leader: it gets the frames and answers them.
///
/// The death of a member ends the group: the others are killed for it (`kill_rest`), and `reap`
/// returns only when all are gone. A group is started once; the next life is another WorkerGroup.
///
/// Owner: the coordinator's loop. The destructor is that of each member.
/// Threads: not thread-safe.
class WorkerGroup {
 public:
  struct Options {
    std::filesystem::path program;
    std::filesystem::path torch_root;
    std::vector<Device> devices;  // a member each; at least one
  };

  /// Starts every member; where one cannot be started, none is left.
  ///
  /// Errors: those of WorkerProcess::start.
  static Result<std::unique_ptr<WorkerGroup>> start(const Options& options);

  std::size_t size() const { return members_.size(); }
  WorkerProcess& member(std::size_t index) { return *members_[index].process; }
  WorkerProcess& leader() { return member(0); }
  std::vector<pid_t> pids() const;

  /// Closes every member's socket: they see the end of the stream and exit.
  void close();

  /// Kills every member that has not been waited for.
  void kill();

  /// This member has ended, or its stream has: the first one of which that is said is the cause of
  /// the group's end.
  void note_end(std::size_t member);

  /// Kills every member but this one, which has ended by itself.
  void kill_rest(std::size_t member);

  /// How the group ended, waited for no longer than `limit` in all: as the member did that was the
  /// cause, with the CPU time of all. nullopt: a member runs, or the kernel does not hand it over
  /// (WorkerProcess::reap). Not to be called again once it has returned a death.
  std::optional<WorkerDeath> reap(Duration limit);

  /// The last 4 KB that the member which was the cause has printed; before an end, the leader.
  const std::string& last_output() const;

  /// Its processes are waited for no more.
  void leave();

 private:
  struct Member {
    std::unique_ptr<WorkerProcess> process;
    std::optional<WorkerDeath> death{};  // once it has been waited for
  };

  WorkerGroup() = default;

  std::vector<Member> members_;
  std::optional<std::size_t> cause_;  // of the end: this member
};

}  // namespace muster
