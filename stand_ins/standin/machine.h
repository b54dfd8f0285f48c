#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "standin/device.h"
#include "standin/order.h"
#include "standin/pinned_memory.h"

namespace muster::standin {

/// A stream of a device; stream 0 is the default one.
struct Place {
  std::size_t device = 0;
  std::size_t stream = 0;
};

/// Memory that a piece of work reads or writes: any address within it, in the host's view. What is
/// neither a device's nor pinned is not looked at.
struct BufferUse {
  const void* address = nullptr;
  bool is_write = false;
};

/// A piece of work for a stream. `work` uses addresses of the device's view alone and holds nothing
/// that gives memory back: the order of streams keeps what it uses, as on a GPU.
struct Launch {
  Place place;
  std::string operation = {};  // "aten::addmm.out"
  std::vector<BufferUse> uses = {};
  WorkKind kind = WorkKind::Kernel;
  std::uint64_t bytes_to_device = 0;  // of a copy from or to the host
  std::uint64_t bytes_to_host = 0;
  std::function<void()> work = {};
};

/// A point of a stream that others wait for.
struct Event {
  std::optional<Place> place;  // nullopt: it was never recorded, so it is over
  std::uint64_t count = 0;
  Past past;
};

/// The stand-in devices of a process: their memory, streams and events, and pinned memory.
///
/// Threads: thread-safe. Errors, where one is not named: Unavailable when the device has failed
/// (`failure`), Internal for a use of memory that nothing has put into an order.
class Machine {
 public:
  /// Errors: those of PageStore.
  static Result<std::unique_ptr<Machine>> open(std::vector<DeviceSettings> devices);
  /// Does first what was launched.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  std::size_t device_count() const { return devices_.size(); }
  std::optional<DeviceFailure> failure(std::size_t device) const;
  const DeviceSettings& settings(std::size_t device) const {
    return devices_.at(device)->settings();
  }

  /// Memory of the device, for the stream: NaNs in every float type. nullptr for no bytes.
  ///
  /// Errors: ResourceExhausted, when what is kept for later does not suffice either.
  Result<void*> allocate(Place place, std::uint64_t size);
  /// Its stream goes on using it until it has come so far.
  void free(void* address);
  /// It is used on this stream too: `free` lets its own stream wait for it.
  void add_user(const void* address, Place place);
  /// Waits for the device's streams and gives back what is kept for later. Who asks for it often
  /// has nobody to tell, so a block that was given back in use is told by the next launch or wait.
  Status release_kept(std::size_t device);

  MemoryCounts memory_counts(std::size_t device) const;
  void restart_peaks(std::size_t device);
  struct FreeMemory {
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
  };
  FreeMemory free_memory(std::size_t device) const;

  /// Errors: ResourceExhausted.
  Result<void*> allocate_pinned(std::uint64_t size);
  void free_pinned(void* address);
  bool is_pinned(const void* address);
  /// Whether it is an address of pinned memory, given out or not. Takes no lock, as `device_of`.
  bool owns_pinned_address(const void* address) const { return pinned_.store().contains(address); }
  /// Whether kernels know something by this address, or could. Takes no lock.
  bool owns_kernel_address(const void* address) const;

  /// The device of an address; nullopt: it is no device's.
  std::optional<std::size_t> device_of(const void* address) const;
  /// Where kernels find what the host knows by this address: itself where it is ordinary memory.
  void* kernel_address(const void* address) const;

  Status launch(Launch launch);
  Status wait(Place place);
  Status wait_for_device(std::size_t device);
  /// Says what `wait` would say, and does not wait.
  Result<bool> is_done(Place place);

  void record(Event& event, Place place);
  /// What comes later on the stream waits for the event.
  Status let_wait(Place place, const Event& event);
  Status wait_for(const Event& event);
  Result<bool> is_over(const Event& event);

 private:
  explicit Machine(std::unique_ptr<PageStore> pinned);

  StreamNumber number_of(Place place) const;
  std::string name_of(StreamNumber stream) const;
  Error order_error(const MemoryUse& next, const MemoryUse& earlier) const;
  Error unknown_memory(const Launch& launch, std::string_view what) const;

  Stream& stream_of(Place place) MUSTER_REQUIRES(mutex_);
  Status trouble(std::size_t device) MUSTER_REQUIRES(mutex_);
  void come_to(const Event& event);
  Past done() const MUSTER_REQUIRES(mutex_);
  MemoryUse next_use(Place place, const std::string& operation, bool is_write)
      MUSTER_REQUIRES(mutex_);
  Result<const UseHistory*> history_of(const Launch& launch, const void* address)
      MUSTER_REQUIRES(mutex_);
  Status check(const Launch& launch, const BufferUse& buffer) MUSTER_REQUIRES(mutex_);
  void note(const Launch& launch, const BufferUse& buffer) MUSTER_REQUIRES(mutex_);
  std::uint64_t push(Launch launch) MUSTER_REQUIRES(mutex_);
  void learn(const Moment& moment, const Past& past) MUSTER_REQUIRES(mutex_);
  DeviceMemory::Block* block_of(const void* address) MUSTER_REQUIRES(mutex_);
  void* find_memory(Place place, std::uint64_t size) MUSTER_REQUIRES(mutex_);
  void fill(Place place, void* memory, std::uint64_t size) MUSTER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  PinnedMemory pinned_;                                // guarded by mutex_, but for where it lies
  std::vector<std::unique_ptr<Device>> devices_;       // the same; the list itself never changes
  std::vector<Past> pasts_ MUSTER_GUARDED_BY(mutex_);  // by stream: what comes before its next work
  Past known_ MUSTER_GUARDED_BY(mutex_);               // what the host has waited for
  std::optional<Error> too_early_ MUSTER_GUARDED_BY(mutex_);  // a block given back in use; not told
};

}  // namespace muster::standin
