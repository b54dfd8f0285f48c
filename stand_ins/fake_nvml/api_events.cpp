#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "fake_nvml/driver.h"

namespace muster::fake_nvml {

/// The GPUs that a set listens to, and how far it has come with each.
struct EventSetState {
  struct Registration {
    std::uint32_t gpu = 0;
    std::uint64_t types = 0;
    std::size_t next = 0;  // into FakeGpu::events
  };
  std::mutex mutex;
  std::vector<Registration> registrations;
};

namespace {

constexpr std::uint64_t kSupportedTypes = kEventDoubleBitEcc | kEventXid | kEventRecoveryAction;
// How often a wait looks at a clock that others step.
constexpr auto kSteppedPoll = std::chrono::milliseconds(2);

struct EventSets {
  std::mutex mutex;
  std::map<EventSetState*, std::shared_ptr<EventSetState>> live;
};

EventSets& event_sets() {
  static EventSets all;
  return all;
}

/// Shared, so that a set which is freed while a thread waits on it stays until that thread is done.
std::shared_ptr<EventSetState> find_set(EventSetHandle handle) {
  const std::lock_guard lock(event_sets().mutex);
  const auto found = event_sets().live.find(handle);
  return found == event_sets().live.end() ? nullptr : found->second;
}

/// The first event that the set has not told yet, and its registration; nullptr: there is none
/// left.
struct NextEvent {
  EventSetState::Registration* registration = nullptr;
  const FakeEvent* event = nullptr;
};
NextEvent next_event(const Driver& driver, EventSetState& set) {
  NextEvent first;
  for (auto& registration : set.registrations) {
    const auto& events = driver.gpu(registration.gpu).spec.events;
    while (registration.next < events.size() &&
           (events[registration.next].type & registration.types) == 0) {
      ++registration.next;
    }
    if (registration.next == events.size()) continue;
    const auto& event = events[registration.next];
    if (first.event == nullptr || event.at < first.event->at) first = {&registration, &event};
  }
  return first;
}

/// Takes the next event if its time has come; else how long until it does, at most `limit`.
bool take_event(const Driver& driver, EventSetState& set, EventData& data,
                std::chrono::nanoseconds& limit) {
  const std::lock_guard lock(set.mutex);
  const auto next = next_event(driver, set);
  if (next.event == nullptr) return false;
  const double wait_s = next.event->at - seconds(driver.clock().now_ns());
  if (wait_s > 0) {
    const auto wait = std::chrono::nanoseconds(static_cast<std::int64_t>(wait_s * 1e9) + 1);
    if (wait_s < 1e9) limit = std::min(limit, wait);
    return false;
  }
  ++next.registration->next;
  data = {driver.handle_of(next.registration->gpu), next.event->type, next.event->data, kNoInstance,
          kNoInstance};
  return true;
}

int wait_for_event(Function function, EventSetHandle handle, EventData* data, unsigned limit_ms) {
  return answer_system(function, [&](Driver& driver) -> int {
    const auto set = find_set(handle);
    if (data == nullptr || set == nullptr) return kInvalidArgument;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
    for (;;) {
      std::chrono::nanoseconds pause = end - std::chrono::steady_clock::now();
      const auto left = pause;
      if (take_event(driver, *set, *data, pause)) return kSuccess;
      if (left <= std::chrono::nanoseconds(0)) return kTimeout;
      if (driver.clock().is_stepped()) {
        pause = std::min<std::chrono::nanoseconds>(left, kSteppedPoll);
      }
      std::this_thread::sleep_for(pause);
    }
  });
}

}  // namespace

FAKENVML_EXPORT int nvmlEventSetCreate(EventSetHandle* set) {
  return answer_system(Function::nvmlEventSetCreate, [&](Driver&) -> int {
    if (set == nullptr) return kInvalidArgument;
    auto state = std::make_shared<EventSetState>();
    *set = state.get();
    const std::lock_guard lock(event_sets().mutex);
    event_sets().live.emplace(state.get(), std::move(state));
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlEventSetFree(EventSetHandle set) {
  return answer_system(Function::nvmlEventSetFree, [&](Driver&) -> int {
    const std::lock_guard lock(event_sets().mutex);
    return event_sets().live.erase(set) == 0 ? kInvalidArgument : kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceGetSupportedEventTypes(DeviceHandle device, std::uint64_t* types) {
  return answer_gpu(Function::nvmlDeviceGetSupportedEventTypes, device, [&](const Visit&) -> int {
    if (types == nullptr) return kInvalidArgument;
    *types = kSupportedTypes;
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlDeviceRegisterEvents(DeviceHandle device, std::uint64_t types,
                                             EventSetHandle handle) {
  return answer_gpu(Function::nvmlDeviceRegisterEvents, device, [&](const Visit& visit) -> int {
    const auto set = find_set(handle);
    if (set == nullptr) return kInvalidArgument;
    if ((types & ~kSupportedTypes) != 0) return kNotSupported;
    const std::lock_guard lock(set->mutex);
    // What happened before is not told.
    const auto& events = visit.spec().events;
    const auto first = std::find_if(events.begin(), events.end(), [&](const FakeEvent& event) {
      return event.at >= seconds(visit.now_ns);
    });
    set->registrations.push_back(
        {visit.handle.gpu, types, static_cast<std::size_t>(first - events.begin())});
    return kSuccess;
  });
}

FAKENVML_EXPORT int nvmlEventSetWait(EventSetHandle set, EventData* data, unsigned limit_ms) {
  return wait_for_event(Function::nvmlEventSetWait, set, data, limit_ms);
}

FAKENVML_EXPORT int nvmlEventSetWait_v2(EventSetHandle set, EventData* data, unsigned limit_ms) {
  return wait_for_event(Function::nvmlEventSetWait_v2, set, data, limit_ms);
}

}  // namespace muster::fake_nvml
