#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "standin/device_memory.h"
#include "standin/report.h"
#include "standin/settings.h"
#include "standin/stream.h"

namespace muster::standin {

/// Why a device computes no more.
struct DeviceFailure {
  DeviceError error = DeviceError::LaunchFailure;
  std::string text;
};

/// Inner: what the device does for itself, as waiting for an event. It is neither slow nor counted.
enum class WorkKind { Kernel, Copy, Inner };

/// One device: its memory, its streams, and what is wrong with it.
///
/// Threads: `run` by the threads of its streams, `failure` by any; the rest is the machine's.
class Device {
 public:
  /// The default stream, and as many as torch has of a priority. Source: torch 2.11,
  /// c10/cuda/CUDAStream.h, kStreamsPerPool.
  static constexpr std::size_t kStreamCount = 33;

  Device(DeviceSettings settings, std::unique_ptr<PageStore> store);

  /// Before it is destroyed: streams may wait for each other, those of other devices too.
  void wait_for_streams();

  const DeviceSettings& settings() const { return settings_; }
  DeviceMemory& memory() { return memory_; }
  const DeviceMemory& memory() const { return memory_; }

  /// Bytes that it has for this process now: others may hold some.
  std::uint64_t memory_limit() const;

  Stream& stream(std::size_t index);
  /// nullptr: nobody has used it yet.
  Stream* started_stream(std::size_t index) const { return streams_[index].get(); }

  /// Whether an allocation on the stream, which is counted here, is planted to find no memory.
  bool is_planted_full(std::size_t stream);

  /// The piece of work as the stream runs it: with the faults that are planted at this number of
  /// its kind, and nothing once the device has failed. What `work` throws is an assertion of a
  /// kernel.
  Stream::Work wrap(std::size_t stream, std::string operation, WorkKind kind, Stream::Work work);

  std::optional<DeviceFailure> failure() const;

  /// What it tells to those who watch it.
  StandinReport& report() { return report_.numbers(); }

 private:
  bool is_counted(std::size_t stream) const { return settings_.in_lanes == 0 || stream > 0; }
  void run(const std::string& operation, WorkKind kind, std::uint64_t number,
           const Stream::Work& work);
  void tell(WorkKind kind, double seconds);
  void compute(const std::string& operation, const Stream::Work& work);
  void fail(DeviceError error, std::string reason);

  const DeviceSettings settings_;
  Report report_;
  DeviceMemory memory_;
  std::uint64_t allocations_ = 0;
  std::uint64_t kernels_ = 0;
  std::uint64_t copies_ = 0;
  mutable Mutex mutex_;
  std::optional<DeviceFailure> failure_ MUSTER_GUARDED_BY(mutex_);
  std::array<std::unique_ptr<Stream>, kStreamCount> streams_;  // the last member: they end first
};

}  // namespace muster::standin
