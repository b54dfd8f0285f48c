// Every launch is checked against what the memory that it uses was used for before: by order alone,
// so that a fault is found in every run, whatever the times. Host threads share what they have
// waited for; see order.cpp.

#include "standin/machine.h"

#include <fmt/format.h>

#include <utility>

namespace muster::standin {
namespace {

// Addresses are free; memory is not taken before it is written.
constexpr std::size_t kAddresses = std::size_t{64} << 30;

}  // namespace

Result<std::unique_ptr<Machine>> Machine::open(std::vector<DeviceSettings> devices) {
  auto pinned = MUSTER_TRY(PageStore::reserve(kAddresses));
  std::unique_ptr<Machine> machine(new Machine(std::move(pinned)));
  for (auto& settings : devices) {
    auto store = MUSTER_TRY(PageStore::reserve(kAddresses));
    machine->devices_.push_back(std::make_unique<Device>(std::move(settings), std::move(store)));
  }
  auto& opened = *machine;
  const MutexLock lock(opened.mutex_);
  opened.pasts_.resize(opened.devices_.size() * Device::kStreamCount);
  return machine;
}

Machine::Machine(std::unique_ptr<PageStore> pinned) : pinned_(std::move(pinned)) {}

Machine::~Machine() {
  for (const auto& device : devices_) device->wait_for_streams();
}

std::optional<DeviceFailure> Machine::failure(std::size_t device) const {
  return devices_.at(device)->failure();
}

StreamNumber Machine::number_of(Place place) const {
  return place.device * Device::kStreamCount + place.stream;
}

std::string Machine::name_of(StreamNumber stream) const {
  const auto& device = *devices_.at(stream / Device::kStreamCount);
  return fmt::format("stream {} of {}", stream % Device::kStreamCount, device.settings().name);
}

Stream& Machine::stream_of(Place place) { return devices_.at(place.device)->stream(place.stream); }

// A block that was given back too early is told once: nothing hinders the next call.
Status Machine::trouble(std::size_t device) {
  if (too_early_) return *std::exchange(too_early_, std::nullopt);
  if (const auto failure = devices_.at(device)->failure()) {
    return Error{ErrorKind::Unavailable, failure->text};
  }
  return Done{};
}

Past Machine::done() const {
  Past done;
  for (std::size_t i = 0; i < pasts_.size(); ++i) {
    const auto* stream =
        devices_[i / Device::kStreamCount]->started_stream(i % Device::kStreamCount);
    if (stream != nullptr) done.add(Moment{i, stream->done()});
  }
  return done;
}

MemoryUse Machine::next_use(Place place, const std::string& operation, bool is_write) {
  return {.at = {number_of(place), stream_of(place).last() + 1},
          .operation = operation,
          .is_write = is_write};
}

Error Machine::order_error(const MemoryUse& next, const MemoryUse& earlier) const {
  return {ErrorKind::Internal,
          fmt::format("{} on {} {} memory that {} {} on {}, and nothing lets it wait for that",
                      next.operation, name_of(next.at.stream), next.is_write ? "writes" : "reads",
                      earlier.operation, earlier.is_write ? "writes" : "reads",
                      name_of(earlier.at.stream))};
}

Error Machine::unknown_memory(const Launch& launch, std::string_view what) const {
  return {ErrorKind::Internal, fmt::format("{} on {} uses memory {}", launch.operation,
                                           name_of(number_of(launch.place)), what)};
}

// nullptr: ordinary memory of the host, whose uses nobody counts.
Result<const UseHistory*> Machine::history_of(const Launch& launch, const void* address) {
  constexpr std::string_view kNotGivenOut = "that is not given out";
  if (const auto device = device_of(address)) {
    if (*device != launch.place.device) return unknown_memory(launch, "of another device");
    const auto* block = block_of(address);
    if (block == nullptr || block->is_free) return unknown_memory(launch, kNotGivenOut);
    return &block->history;
  }
  if (!owns_pinned_address(address)) return static_cast<const UseHistory*>(nullptr);
  const auto* block = pinned_.find(address);
  if (block == nullptr || block->is_free) return unknown_memory(launch, kNotGivenOut);
  return &block->history;
}

Status Machine::check(const Launch& launch, const BufferUse& buffer) {
  const auto* history = MUSTER_TRY(history_of(launch, buffer.address));
  if (history == nullptr) return Done{};
  const auto next = next_use(launch.place, launch.operation, buffer.is_write);
  const auto earlier = history->conflict(next, pasts_[next.at.stream]);
  if (earlier) return order_error(next, *earlier);
  return Done{};
}

void Machine::note(const Launch& launch, const BufferUse& buffer) {
  const auto use = next_use(launch.place, launch.operation, buffer.is_write);
  if (auto* block = block_of(buffer.address)) {
    block->history.add(use);
  } else if (auto* pinned = pinned_.find(buffer.address)) {
    pinned_.add_use(*pinned, use);
  }
}

std::uint64_t Machine::push(Launch launch) {
  auto& device = *devices_.at(launch.place.device);
  device.report().bytes_to_device += launch.bytes_to_device;
  device.report().bytes_to_host += launch.bytes_to_host;
  return stream_of(launch.place)
      .push(device.wrap(launch.place.stream, std::move(launch.operation), launch.kind,
                        std::move(launch.work)));
}

Status Machine::launch(Launch launch) {
  Stream* stream = nullptr;
  {
    const MutexLock lock(mutex_);
    stream = &stream_of(launch.place);
  }
  stream->wait_for_room();
  const MutexLock lock(mutex_);
  MUSTER_TRY(trouble(launch.place.device));
  pasts_[number_of(launch.place)].add(known_);
  for (const auto& buffer : launch.uses) MUSTER_TRY(check(launch, buffer));
  for (const auto& buffer : launch.uses) note(launch, buffer);
  push(std::move(launch));
  return Done{};
}

void Machine::learn(const Moment& moment, const Past& past) {
  known_.add(moment);
  known_.add(past);
  pinned_.on_wait(known_);
}

Status Machine::wait(Place place) {
  Event now;
  record(now, place);
  return wait_for(now);
}

Status Machine::wait_for_device(std::size_t device) {
  Status outcome = Done{};
  for (std::size_t i = 0; i < Device::kStreamCount; ++i) {
    {
      const MutexLock lock(mutex_);
      if (devices_.at(device)->started_stream(i) == nullptr) continue;
    }
    if (auto waited = wait({device, i}); !waited) outcome = std::move(waited);
  }
  return outcome;
}

Result<bool> Machine::is_done(Place place) {
  Event now;
  record(now, place);
  return is_over(now);
}

void Machine::record(Event& event, Place place) {
  const MutexLock lock(mutex_);
  event = {.place = place, .count = stream_of(place).last(), .past = pasts_[number_of(place)]};
}

Status Machine::let_wait(Place place, const Event& event) {
  const MutexLock lock(mutex_);
  if (!event.place) return Done{};
  MUSTER_TRY(trouble(place.device));
  auto& past = pasts_[number_of(place)];
  past.add(Moment{number_of(*event.place), event.count});
  past.add(event.past);
  auto& other = stream_of(*event.place);
  push({.place = place,
        .operation = "wait for an event",
        .uses = {},
        .kind = WorkKind::Inner,
        .work = [&other, count = event.count] { other.wait_for(count); }});
  return Done{};
}

// Of an event that was recorded.
void Machine::come_to(const Event& event) {
  Stream* stream = nullptr;
  {
    const MutexLock lock(mutex_);
    stream = &stream_of(*event.place);
  }
  stream->wait_for(event.count);
  const MutexLock lock(mutex_);
  learn({number_of(*event.place), event.count}, event.past);
}

Status Machine::wait_for(const Event& event) {
  if (!event.place) return Done{};
  come_to(event);
  const MutexLock lock(mutex_);
  return trouble(event.place->device);
}

Result<bool> Machine::is_over(const Event& event) {
  if (!event.place) return true;
  const MutexLock lock(mutex_);
  const bool is_over = stream_of(*event.place).done() >= event.count;
  if (is_over) learn({number_of(*event.place), event.count}, event.past);
  MUSTER_TRY(trouble(event.place->device));
  return is_over;
}

}  // namespace muster::standin
