#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordinator/worker_process.h"
#include "net/frame.h"
#include "spec/device.h"
#include "wire/messages.h"

namespace muster {

enum class GroupEnding : std::uint8_t {
  EndOfStream,  // their sockets are closed: they finish nothing and exit
  Kill,
};

/// The processes of all worker groups: GroupRunner, or a test's fake.
///
/// Threads: owned by the fleet's loop.
class GroupProcesses {
 public:
  virtual ~GroupProcesses() = default;

  /// Starts the processes of a group that has none, one for each device; their numbers.
  ///
  /// Errors: those of WorkerGroup::start.
  virtual Result<std::vector<pid_t>> start(std::size_t group,
                                           const std::vector<Device>& devices) = 0;

  /// Sends a frame to the leader. To one that is dead it is lost: its end is noticed otherwise.
  /// Expect, which is worth nothing later, is dropped while the leader has frames to read.
  virtual void send(std::size_t group, MessageType type, std::uint64_t id,
                    std::vector<std::byte> payload) = 0;

  virtual void end(std::size_t group, GroupEnding how) = 0;

  /// As WorkerGroup::reap.
  virtual std::optional<WorkerDeath> reap(std::size_t group, Duration limit) = 0;

  /// Reads what the group has still printed, gives each whole line to `on_line`, and returns the
  /// last 4 KB of the member that ended first.
  virtual std::string last_output(std::size_t group,
                                  const std::function<void(const std::string&)>& on_line) = 0;

  /// Forgets the group's processes; those that were not reaped are left to the system.
  virtual void leave(std::size_t group) = 0;
};

/// What the processes of groups do, as their owner hears of it.
class GroupProcessEvents {
 public:
  virtual ~GroupProcessEvents() = default;

  /// Errors: handed to `on_broken`.
  virtual Status on_frame(std::size_t group, std::size_t member, const FrameHeader& header,
                          std::span<const std::byte> payload) = 0;

  /// What a member has sent is not what a worker sends.
  ///
  /// Errors: end the whole fleet.
  virtual Status on_broken(std::size_t group, const Error& error) = 0;

  /// A member has ended its stream, or dies. The sockets of the whole group are closed. death: how
  /// it dies, where the kernel says so before it has freed its memory; without its CPU time.
  virtual void on_stream_end(std::size_t group, const std::optional<WorkerDeath>& death) = 0;

  /// A member has ended. The others of the group have been killed; `reap` tells when all are gone.
  virtual void on_exit(std::size_t group) = 0;

  /// A line that a member has printed.
  virtual void on_line(std::size_t group, const std::string& line) = 0;
};

}  // namespace muster
