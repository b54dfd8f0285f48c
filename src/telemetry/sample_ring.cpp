// A ring between two processes with one writer and one reader, without locks and without a
// wake-up per record. Positions count bytes since the beginning and never wrap, so full and
// empty differ. A record becomes visible by the one store to `head`. The reader trusts nothing
// in the memory: sizes are read once and checked against what can be there. A ring that is empty
// starts over at its front, which keeps its working set to a few pages.

#include "telemetry/sample_ring.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster {
namespace {

constexpr const char* kName = "shared memory of samples";

// u32 size, the bytes, and up to the next multiple of eight.
using RecordSize = std::uint32_t;
constexpr std::uint64_t kAlign = 8;
// In the place of a size: the next record is at the front.
constexpr RecordSize kWrap = ~RecordSize{0};

constexpr std::uint64_t room_for(std::uint64_t size) {
  return (sizeof(RecordSize) + size + kAlign - 1) / kAlign * kAlign;
}

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // or two processes cannot share it

}  // namespace

struct SampleRing::Layout {
  // Bytes since the beginning, and so never wrapped: `head` were appended, `tail` are taken.
  alignas(64) std::atomic<std::uint64_t> head;
  alignas(64) std::atomic<std::uint64_t> tail;
  std::atomic<bool> is_wished;  // every record is to be told of
  std::atomic<bool> is_told;    // and has been
  alignas(64) std::array<std::byte, kCapacity> bytes;

  // Read once: the other process may write there meanwhile.
  RecordSize size_at(std::uint64_t position) {
    auto& place = reinterpret_cast<RecordSize&>(bytes[position % kCapacity]);
    return std::atomic_ref(place).load(std::memory_order_relaxed);
  }
};

Result<SampleRing> SampleRing::create() {
  UniqueFd fd(::memfd_create("muster-samples", MFD_CLOEXEC));
  if (!fd.is_open()) return system_error(kName, "create", errno);
  if (::ftruncate(fd.get(), sizeof(Layout)) != 0) return system_error(kName, "size", errno);
  return map(std::move(fd));
}

Result<SampleRing> SampleRing::map(UniqueFd fd) {
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error(kName, "map", errno);
  // A new memfd is all zeros, which is an empty ring.
  return SampleRing(std::move(fd), static_cast<Layout*>(memory));
}

SampleRing::SampleRing(SampleRing&& other) noexcept
    : fd_(std::move(other.fd_)), layout_(std::exchange(other.layout_, nullptr)) {}

SampleRing& SampleRing::operator=(SampleRing&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(layout_, other.layout_);
  return *this;
}

SampleRing::~SampleRing() {
  if (layout_ != nullptr) ::munmap(layout_, sizeof(Layout));
}

bool SampleRing::append(std::span<const std::byte> record) {
  auto head = layout_->head.load(std::memory_order_relaxed);
  auto tail = layout_->tail.load(std::memory_order_acquire);
  const auto size = room_for(record.size());
  const auto offset = head % kCapacity;
  // An empty ring is filled from the front again, so that the same few pages are used; but not
  // where the record would reach the place that says so.
  const bool restarts = head == tail && offset >= size;
  const auto skipped = restarts || offset + size > kCapacity ? kCapacity - offset : 0;
  const auto used = restarts ? 0 : head - tail + skipped;
  if (record.size() >= kWrap || used + size > kCapacity) return false;
  if (skipped > 0) {
    std::memcpy(layout_->bytes.data() + offset, &kWrap, sizeof kWrap);
    head += skipped;
  }
  auto* place = layout_->bytes.data() + head % kCapacity;
  const auto record_size = static_cast<RecordSize>(record.size());
  std::memcpy(place, &record_size, sizeof record_size);
  std::memcpy(place + sizeof record_size, record.data(), record.size());
  // Sequentially consistent, as all below: who appends and then finds that no notice is wished, and
  // who wishes one and then finds no record, cannot both be right.
  layout_->head.store(head + size);
  // What was skipped of an empty ring is free at once, unless the collector has passed it already.
  if (restarts) layout_->tail.compare_exchange_strong(tail, head);
  return true;
}

bool SampleRing::begin_notice() {
  const bool is_half_full =
      layout_->head.load(std::memory_order_relaxed) - layout_->tail.load() > kCapacity / 2;
  if (!is_half_full && !layout_->is_wished.load()) return false;
  return !layout_->is_told.exchange(true);
}

void SampleRing::wish_notices(bool is_wished) { layout_->is_wished.store(is_wished); }

void SampleRing::begin_taking() { layout_->is_told.store(false); }

Result<bool> SampleRing::take(std::vector<std::byte>& record) {
  for (;;) {
    // In this order: an appended record may move the tail of an empty ring, after the head.
    auto before = layout_->tail.load();
    const auto head = layout_->head.load();
    if (head == before) return false;
    auto tail = before;
    auto size = tail % kAlign == 0 ? layout_->size_at(tail) : kWrap;
    if (size == kWrap) {
      tail += kCapacity - tail % kCapacity;
      size = layout_->size_at(tail);
    }
    const auto left = head - tail;  // immense where the tail has passed the head
    const auto room_max = std::min(left, kCapacity - tail % kCapacity);
    const bool is_record = left <= kCapacity && room_for(size) <= room_max;
    if (is_record) {
      const auto* begin = layout_->bytes.data() + tail % kCapacity + sizeof size;
      record.assign(begin, begin + size);
    }
    // When the tail was moved meanwhile, what was read may have been written over.
    const bool is_still_there =
        is_record ? layout_->tail.compare_exchange_strong(before, tail + room_for(size))
                  : layout_->tail.load() == before;
    if (!is_still_there) continue;
    if (is_record) return true;
    return Error{ErrorKind::Corrupt, "the sampler's shared memory holds what is no sample"};
  }
}

void SampleRing::clear() {
  layout_->head.store(0);
  layout_->tail.store(0);
  layout_->is_told.store(false);
}

}  // namespace muster
