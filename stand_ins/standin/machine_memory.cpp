// The machine's memory. What is handed out is filled with NaNs first, in the order of the stream
// like everything else, so that an operator that reads what it never wrote shows.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "standin/machine.h"

namespace muster::standin {
namespace {

constexpr int kUndefined = 0xFF;  // a NaN in every float type, and no token id

Error full_error(const Device& device, std::uint64_t size) {
  constexpr double kMib = 1 << 20;
  const auto mib = [&](std::uint64_t bytes) { return static_cast<double>(bytes) / kMib; };
  const auto& counts = device.memory().counts();
  const auto limit = device.memory_limit();
  const auto left = limit - std::min(limit, counts.taken_bytes);
  return {ErrorKind::ResourceExhausted,
          fmt::format(
              "{} is out of memory: {:.2f} MiB asked for, {:.2f} of {:.2f} MiB free, {:.2f} "
              "MiB given out by this process",
              device.settings().name, mib(size), mib(left), mib(limit), mib(counts.live_bytes))};
}

}  // namespace

DeviceMemory::Block* Machine::block_of(const void* address) {
  const auto device = device_of(address);
  return device ? devices_[*device]->memory().find(address) : nullptr;
}

std::optional<std::size_t> Machine::device_of(const void* address) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i]->memory().store().contains(address)) return i;
  }
  return std::nullopt;
}

void* Machine::kernel_address(const void* address) const {
  auto* at = static_cast<std::byte*>(const_cast<void*>(address));
  if (const auto device = device_of(address)) {
    return at + devices_[*device]->memory().store().device_offset();
  }
  return pinned_.store().contains(address) ? at + pinned_.store().device_offset() : at;
}

bool Machine::owns_kernel_address(const void* address) const {
  for (const auto& device : devices_) {
    if (device->memory().store().device_view_contains(address)) return true;
  }
  return pinned_.store().device_view_contains(address);
}

// What is kept for later is given back before the device counts as full, as CUDA's allocator does.
void* Machine::find_memory(Place place, std::uint64_t size) {
  auto& device = *devices_.at(place.device);
  auto& memory = device.memory();
  const auto owner = number_of(place);
  auto* found = memory.reuse(size, owner);
  if (found == nullptr) {
    const auto is_full = [&] {
      return memory.counts().taken_bytes + DeviceMemory::rounded(size) > device.memory_limit();
    };
    if (is_full()) memory.flush(done());
    if (!is_full()) found = memory.take(size, owner);
  }
  device.report().taken_bytes = memory.counts().taken_bytes;
  if (found != nullptr) fill(place, found, size);
  return found;
}

void Machine::fill(Place place, void* memory, std::uint64_t size) {
  Launch launch{.place = place,
                .operation = "an allocation",
                .uses = {{memory, true}},
                .kind = WorkKind::Inner,
                .work = [at = kernel_address(memory), size] { std::memset(at, kUndefined, size); }};
  note(launch, launch.uses.front());
  push(std::move(launch));
}

Result<void*> Machine::allocate(Place place, std::uint64_t size) {
  if (size == 0) return static_cast<void*>(nullptr);
  auto& device = *devices_.at(place.device);
  bool is_planted = false;
  {
    const MutexLock lock(mutex_);
    MUSTER_TRY(trouble(place.device));
    is_planted = device.is_planted_full(place.stream);
    auto* memory = is_planted ? nullptr : find_memory(place, size);
    if (memory != nullptr) return memory;
  }
  if (!is_planted) MUSTER_TRY(release_kept(place.device));
  const MutexLock lock(mutex_);
  auto* memory = is_planted ? nullptr : find_memory(place, size);
  if (memory != nullptr) return memory;
  device.memory().count_full();
  ++device.report().full;
  return full_error(device, size);
}

// A destructor cannot fail, so the next call tells what is wrong.
void Machine::free(void* address) {
  const MutexLock lock(mutex_);
  auto* block = block_of(address);
  if (block == nullptr) return;
  auto& device = *devices_[*device_of(address)];
  const Place place{*device_of(address), block->owner % Device::kStreamCount};
  auto& past = pasts_[block->owner];
  past.add(known_);
  for (const auto user : block->users) {
    auto& other = device.stream(user % Device::kStreamCount);
    past.add(Moment{user, other.last()});
    past.add(pasts_[user]);
    push({.place = place,
          .operation = "wait for a user of memory",
          .uses = {},
          .kind = WorkKind::Inner,
          .work = [&other, count = other.last()] { other.wait_for(count); }});
  }
  const auto next = next_use(place, "giving memory back", true);
  const auto earlier = block->history.conflict(next, past);
  if (earlier && !too_early_) too_early_ = order_error(next, *earlier);
  device.memory().give_back(*block, {block->owner, stream_of(place).last()});
}

void Machine::add_user(const void* address, Place place) {
  const MutexLock lock(mutex_);
  auto* block = block_of(address);
  if (block != nullptr && block->owner != number_of(place)) {
    block->users.push_back(number_of(place));
  }
}

Status Machine::release_kept(std::size_t device) {
  for (std::size_t i = 0; i < Device::kStreamCount; ++i) {
    {
      const MutexLock lock(mutex_);
      if (devices_.at(device)->started_stream(i) == nullptr) continue;
    }
    Event now;
    record(now, {device, i});
    come_to(now);
  }
  const MutexLock lock(mutex_);
  auto& one = *devices_.at(device);
  one.memory().flush(done());
  one.report().taken_bytes = one.memory().counts().taken_bytes;
  if (const auto failure = one.failure()) return Error{ErrorKind::Unavailable, failure->text};
  return Done{};
}

MemoryCounts Machine::memory_counts(std::size_t device) const {
  const MutexLock lock(mutex_);
  return devices_.at(device)->memory().counts();
}

void Machine::restart_peaks(std::size_t device) {
  const MutexLock lock(mutex_);
  devices_.at(device)->memory().restart_peaks();
}

Machine::FreeMemory Machine::free_memory(std::size_t device) const {
  const MutexLock lock(mutex_);
  const auto& one = *devices_.at(device);
  const auto limit = one.memory_limit();
  return {.free_bytes = limit - std::min(limit, one.memory().counts().taken_bytes),
          .total_bytes = one.settings().memory_bytes};
}

Result<void*> Machine::allocate_pinned(std::uint64_t size) {
  if (size == 0) return static_cast<void*>(nullptr);
  const MutexLock lock(mutex_);
  auto* memory = pinned_.allocate(size, done());
  if (memory == nullptr) return Error{ErrorKind::ResourceExhausted, "no pinned memory is left"};
  return memory;
}

void Machine::free_pinned(void* address) {
  if (address == nullptr) return;
  const MutexLock lock(mutex_);
  pinned_.free(address);
}

bool Machine::is_pinned(const void* address) {
  const MutexLock lock(mutex_);
  const auto* block = pinned_.find(address);
  return block != nullptr && !block->is_free;
}

}  // namespace muster::standin
