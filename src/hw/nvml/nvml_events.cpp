// Waits for faults that the driver announces. One set serves all GPUs; when a GPU is lost every
// wait on the set fails at once, so the set is made again without the ones that cannot be
// registered any more. The recovery action is read from its field, as the event does not carry it.
// A wait is bounded in events, since a storm of XIDs would otherwise never end it.

#include "hw/nvml/nvml_events.h"

#include <algorithm>

#include "hw/nvml/nvml_fields.h"

namespace muster {
namespace {

constexpr std::uint64_t kWanted = kNvmlEventXid | kNvmlEventDoubleBitEcc | kNvmlEventRecoveryAction;
constexpr std::size_t kEventMax = 256;  // of one wait; a storm goes on with the next

class NvmlEvents final : public DeviceEventSource {
 public:
  NvmlEvents(std::shared_ptr<const NvmlLibrary> library, std::vector<NvmlEventDevice> devices)
      : library_(std::move(library)), devices_(std::move(devices)) {}
  NvmlEvents(const NvmlEvents&) = delete;
  NvmlEvents& operator=(const NvmlEvents&) = delete;
  ~NvmlEvents() override { close(); }

  /// True: at least one device is registered. Those that cannot be are left out from now on.
  bool open(NvmlCaller& call);

  Result<std::vector<DeviceEvent>> wait(Duration time) override;

 private:
  void close();
  std::optional<DeviceEvent> read(const NvmlEventData& data, NvmlCaller& call) const;
  std::optional<std::uint64_t> recovery_action(NvmlDevice device, NvmlCaller& call) const;

  std::shared_ptr<const NvmlLibrary> library_;
  std::vector<NvmlEventDevice> devices_;
  NvmlEventSet set_ = nullptr;
};

bool NvmlEvents::open(NvmlCaller& call) {
  const auto& nvml = library_->functions();
  if (!nvml.event_free || !nvml.event_wait || call(nvml.event_create, &set_) != kNvmlSuccess) {
    set_ = nullptr;
    return false;
  }
  std::erase_if(devices_, [&](const NvmlEventDevice& device) {
    unsigned long long supported = 0;
    if (call(nvml.event_types, device.handle, &supported) != kNvmlSuccess) return true;
    return (supported & kWanted) == 0 ||
           call(nvml.event_register, device.handle, supported & kWanted, set_) != kNvmlSuccess;
  });
  return !devices_.empty();
}

void NvmlEvents::close() {
  if (set_ != nullptr) library_->functions().event_free.address(set_);
  set_ = nullptr;
}

std::optional<std::uint64_t> NvmlEvents::recovery_action(NvmlDevice device,
                                                         NvmlCaller& call) const {
  NvmlFieldValue value{};
  value.field = 230;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
  value.code = kNvmlUnknown;
  const auto code = call(library_->functions().field_values, device, 1, &value);
  if (code != kNvmlSuccess || value.code != kNvmlSuccess) return std::nullopt;
  const auto number = nvml_number(value);
  return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

std::optional<DeviceEvent> NvmlEvents::read(const NvmlEventData& data, NvmlCaller& call) const {
  const auto device =
      std::find_if(devices_.begin(), devices_.end(),
                   [&](const NvmlEventDevice& known) { return known.handle == data.device; });
  if (device == devices_.end()) return std::nullopt;
  DeviceEvent event;
  event.device = device->device;
  event.at = std::chrono::steady_clock::now();
  if (data.type == kNvmlEventXid) {
    event.kind = DeviceEventKind::Xid;
    event.code = data.data;
  } else if (data.type == kNvmlEventDoubleBitEcc) {
    event.kind = DeviceEventKind::EccUncorrected;
  } else if (data.type == kNvmlEventRecoveryAction) {
    // The event does not say which: the field does.
    const auto action = recovery_action(data.device, call);
    if (!action) return std::nullopt;
    event.kind = DeviceEventKind::RecoveryAction;
    event.code = *action;
  } else {
    return std::nullopt;
  }
  return event;
}

Result<std::vector<DeviceEvent>> NvmlEvents::wait(Duration time) {
  NoWatch watch;  // a wait is meant to take its time, and another thread has the real one
  NvmlCaller call(watch);
  std::vector<DeviceEvent> events;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  auto timeout = static_cast<unsigned>(std::clamp<std::int64_t>(milliseconds, 0, 3'600'000));
  for (std::size_t i = 0; i < kEventMax; ++i) {
    NvmlEventData data{};
    const auto code = call(library_->functions().event_wait, set_, &data, timeout);
    if (code == kNvmlTimeout) break;
    if (code != kNvmlSuccess) {
      if (!events.empty()) break;
      // A GPU that is lost ends every wait at once: go on with the others.
      const auto count = devices_.size();
      close();
      if (open(call) && devices_.size() < count) break;
      return Error{ErrorKind::Unavailable,
                   "the NVIDIA driver reports no events any more: " + library_->explain(code)};
    }
    if (const auto event = read(data, call)) events.push_back(*event);
    timeout = 0;
  }
  return events;
}

}  // namespace

std::unique_ptr<DeviceEventSource> make_nvml_events(std::shared_ptr<const NvmlLibrary> library,
                                                    std::vector<NvmlEventDevice> devices,
                                                    NvmlCaller& call) {
  auto events = std::make_unique<NvmlEvents>(std::move(library), std::move(devices));
  if (!events->open(call)) return nullptr;
  return events;
}

}  // namespace muster
