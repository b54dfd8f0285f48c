// What torch asks of a device's streams and events, and of which one a thread has chosen.

#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>

#include "standin/torch/devices.h"

namespace muster::standin {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr std::size_t kDevicesMost = 64;

// Taken in turns, as torch takes those of a GPU.
std::size_t next_stream(std::size_t device) {
  static std::array<std::atomic<std::size_t>, kDevicesMost> taken{};
  return 1 + taken.at(device)++ % (Device::kStreamCount - 1);
}

c10::Device device_at(std::size_t device) { return {kType, static_cast<c10::DeviceIndex>(device)}; }

std::size_t index_of(c10::Device device) {
  return device.has_index() ? static_cast<std::size_t>(device.index()) : current_place().device;
}

const Event& event_of(void* event) { return *static_cast<const Event*>(event); }

class GuardImpl final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(device_count());
  }

  c10::Device getDevice() const override { return device_at(current_place().device); }
  void setDevice(c10::Device device) const override { set_current_device(index_of(device)); }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    setDevice(device);
    return before;
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (index_of(device) < device_count()) set_current_device(index_of(device));
  }

  c10::Stream getStream(c10::Device device) const override {
    return stream_at(current_place_of(index_of(device)));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return stream_at({index_of(device), 0});
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*isHighPriority*/) const override {
    return stream_at({index_of(device), next_stream(index_of(device))});
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    return getStreamFromGlobalPool(device, false);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto before = getStream(stream.device());
    set_current_stream(place_of(stream));
    return before;
  }
  bool queryStream(const c10::Stream& stream) const override {
    return answer(machine().is_done(place_of(stream)), place_of(stream).device);
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    check(machine().wait(place_of(stream)), place_of(stream).device);
  }
  void synchronizeDevice(c10::DeviceIndex device) const override {
    const auto index = static_cast<std::size_t>(device);
    check(machine().wait_for_device(index), index);
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex /*device*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event;  // NOLINT: destroyEvent is its owner
    machine().record(*static_cast<Event*>(*event), place_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    check(machine().let_wait(place_of(stream), event_of(event)), place_of(stream).device);
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    const auto& place = event_of(event).place;
    return answer(machine().is_over(event_of(event)), place ? place->device : 0);
  }
  void synchronizeEvent(void* event) const override {
    if (event == nullptr) return;
    const auto& place = event_of(event).place;
    check(machine().wait_for(event_of(event)), place ? place->device : 0);
  }
  void destroyEvent(void* event, c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);  // NOLINT: made by record
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    machine().add_user(data.get(), place_of(stream));
  }

 private:
  static bool answer(const Result<bool>& is_over, std::size_t device) {
    if (!is_over) check(is_over.error(), device);
    return is_over && *is_over;
  }
};

// torch keeps the address until the process has ended.
const c10::impl::DeviceGuardImplRegistrar registrar(kType, new GuardImpl);  // NOLINT: see above

}  // namespace
}  // namespace muster::standin
