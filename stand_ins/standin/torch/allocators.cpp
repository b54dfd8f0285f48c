// torch's allocators for the memory of devices, with a limit and peaks as CUDA's has them, and for
// pinned memory; and the hooks by which the rest of torch finds them.

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <cstring>

#include "standin/torch/devices.h"

namespace muster::standin {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;

// A child of the process has nothing to give back.
void free_memory(void* memory) {
  if (!is_forked()) machine().free(memory);
}
void free_pinned(void* memory) {
  if (!is_forked()) machine().free_pinned(memory);
}

std::size_t index_of(c10::DeviceIndex device) { return static_cast<std::size_t>(device); }

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    const auto place = current_place();
    const auto memory = machine().allocate(place, size);
    if (!memory) check(memory.error(), place.device);
    const c10::Device device(kType, static_cast<c10::DeviceIndex>(place.device));
    return {*memory, *memory, &free_memory, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }

  void copy_data(void* to, const void* from, std::size_t size) const override {
    const auto place = current_place();
    Launch launch{.place = place,
                  .operation = "a copy of memory",
                  .uses = {{from, false}, {to, true}},
                  .kind = WorkKind::Kernel,
                  .work = [to_kernel = machine().kernel_address(to),
                           from_kernel = machine().kernel_address(from),
                           size] { std::memcpy(to_kernel, from_kernel, size); }};
    check(machine().launch(std::move(launch)), place.device);
  }

  bool initialized() override { return device_count() > 0; }

  void emptyCache(c10::MempoolId_t /*pool*/) override {
    for (std::size_t i = 0; i < device_count(); ++i) check(machine().release_kept(i), i);
  }

  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    machine().add_user(data.get(), place_of(stream));
  }

  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const auto counts = machine().memory_counts(index_of(device));
    c10::CachingDeviceAllocator::DeviceStats stats;
    stats.allocated_bytes[0].current = static_cast<std::int64_t>(counts.live_bytes);
    stats.allocated_bytes[0].peak = static_cast<std::int64_t>(counts.live_peak);
    stats.reserved_bytes[0].current = static_cast<std::int64_t>(counts.taken_bytes);
    stats.reserved_bytes[0].peak = static_cast<std::int64_t>(counts.taken_peak);
    stats.num_ooms = static_cast<std::int64_t>(counts.full);
    return stats;
  }

  // Nothing is accumulated: current values and peaks are all there is.
  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    machine().restart_peaks(index_of(device));
  }

  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto memory = machine().free_memory(index_of(device));
    return {memory.free_bytes, memory.total_bytes};
  }
};

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    const auto memory = machine().allocate_pinned(size);
    if (!memory) check(memory.error(), current_place().device);
    return {*memory, *memory, &free_pinned, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }

  // The machine sees by itself which copies use it.
  bool record_event(void* /*memory*/, void* /*context*/, c10::Stream /*stream*/) override {
    return true;
  }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

// torch keeps the addresses until the process has ended.
PinnedAllocator& pinned_allocator() {
  static auto* const allocator = new PinnedAllocator;  // NOLINT: see above
  return *allocator;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(device_count());
  }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current_place().device);
  }
  void setCurrentDevice(c10::DeviceIndex device) const override {
    set_current_device(index_of(device));
  }
  bool isPinnedPtr(const void* data) const override { return machine().is_pinned(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
  c10::Device getDeviceFromPtr(void* data) const override {
    const auto device = machine().device_of(data);
    TORCH_CHECK(device, "it is no address of a stand-in device");
    return {kType, static_cast<c10::DeviceIndex>(*device)};
  }
};

// While the library is loaded, as libtorch_cuda.so does it.
const bool is_registered = [] {
  c10::register_privateuse1_backend("standin");
  c10::SetAllocator(kType, new DeviceAllocator);  // NOLINT: torch keeps it
  at::setHostAllocator(kType, &pinned_allocator());
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // NOLINT: torch keeps it
  return true;
}();

}  // namespace
}  // namespace muster::standin
