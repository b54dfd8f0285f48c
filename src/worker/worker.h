#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/inbox.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/encoder.h"
#include "net/frame.h"
#include "wire/messages.h"

namespace muster {

/// The program that owns one device: greets, loads what it is told, and turns batches into rows, a
/// lane (one thread) per CPU or one for a GPU, until the parent's end of the socket closes.
///
/// Owner: main. Threads: `run` reads on the calling thread; the lanes write their answers under a
/// lock.
class Worker {
 public:
  Worker(UniqueFd socket, DeviceKind device);
  ~Worker();

  /// Serves until the end of the stream.
  ///
  /// Errors: Unavailable when the parent is gone, Corrupt when it does not speak the protocol.
  Status run();

 private:
  struct Job {
    std::uint64_t id = 0;
    Batch batch;
  };

  Status on_frame(const FrameHeader& header, std::span<const std::byte> payload);
  Status on_load(const Load& load);
  Status on_probe(const Probe& probe);
  Status on_compute_test(const ComputeTest& test);
  void run_lane(std::uint32_t cpu, bool is_pinned);
  Status answer(const Job& job, std::vector<float>& rows);
  Status send(MessageType type, std::uint64_t id,
              std::span<const std::span<const std::byte>> parts);
  Status send_error(std::uint64_t id, const Error& error);

  const UniqueFd socket_;
  const DeviceKind device_;
  std::mutex write_mutex_;                    // keeps the frames of several lanes apart
  std::unique_ptr<engine::Encoder> encoder_;  // set once, before the lanes start
  std::uint64_t bytes_at_load_ = 0;           // what the engine held then
  std::unique_ptr<Inbox<Job>> jobs_;
  std::vector<std::jthread> lanes_;
};

}  // namespace muster
