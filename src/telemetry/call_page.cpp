// Shared memory that says in which driver call each device is, and survives the process that
// wrote it: that is how a hang or a crash gets a name. The function is written before the time,
// and the time is what says that there is a call, so a reader never takes an old function for a
// new call. A signal handler notes the slot of its thread and then lets the signal end the
// process.

#include "telemetry/call_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

namespace muster {
namespace {

constexpr std::size_t kNameSize = 48;  // a longer name is cut

struct Slot {
  std::atomic<std::int64_t> since_ns;  // 0: in no call
  std::atomic<std::uint32_t> function;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // or two processes cannot share it

constexpr std::uint32_t kNoSlot = ~0U;

// A signal handler reaches nothing but globals. The first is set once, before any thread; the
// second says whose call this thread is in.
std::atomic<std::uint32_t>* crash_note = nullptr;
thread_local std::uint32_t slot_of_thread = kNoSlot;

void note_crash(int signal_number) {
  if (slot_of_thread != kNoSlot) crash_note->store(slot_of_thread + 1);
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

}  // namespace

struct CallPage::Layout {
  std::atomic<std::uint32_t> crashed;         // slot + 1; 0: none
  std::atomic<std::uint32_t> function_count;  // names that are whole
  std::array<Slot, kDevicesMax + 1> slots;
  std::array<std::array<char, kNameSize>, kFunctionsMax> functions;
};

Result<CallPage> CallPage::create() {
  UniqueFd fd(::memfd_create("muster-calls", MFD_CLOEXEC));
  if (!fd.is_open()) return system_error("shared memory of the sampler", "create", errno);
  if (::ftruncate(fd.get(), sizeof(Layout)) != 0) {
    return system_error("shared memory of the sampler", "size", errno);
  }
  return map(std::move(fd));
}

Result<CallPage> CallPage::map(UniqueFd fd) {
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("shared memory of the sampler", "map", errno);
  // A new memfd is all zeros, which is an empty page.
  return CallPage(std::move(fd), static_cast<Layout*>(memory));
}

CallPage::CallPage(CallPage&& other) noexcept
    : fd_(std::move(other.fd_)),
      layout_(std::exchange(other.layout_, nullptr)),
      adding_(std::move(other.adding_)) {}

CallPage& CallPage::operator=(CallPage&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(layout_, other.layout_);
  std::swap(adding_, other.adding_);
  return *this;
}

CallPage::~CallPage() {
  if (layout_ != nullptr) ::munmap(layout_, sizeof(Layout));
}

std::uint32_t CallPage::add_function(const char* name) {
  const std::string_view wanted(name, ::strnlen(name, kNameSize - 1));
  const MutexLock lock(*adding_);
  const auto count = layout_->function_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (wanted == layout_->functions[i].data()) return i;
  }
  if (count == kFunctionsMax) return kFunctionsMax;
  auto& place = layout_->functions[count];
  place.fill('\0');
  std::ranges::copy(wanted, place.begin());
  layout_->function_count.store(count + 1, std::memory_order_release);
  return count;
}

void CallPage::enter(std::uint32_t slot, std::uint32_t function, TimePoint at) {
  slot_of_thread = slot;
  if (slot >= layout_->slots.size()) return;
  auto& entry = layout_->slots[slot];
  entry.function.store(function, std::memory_order_relaxed);
  entry.since_ns.store(at.time_since_epoch().count(), std::memory_order_release);
}

void CallPage::leave(std::uint32_t slot) {
  slot_of_thread = kNoSlot;
  if (slot < layout_->slots.size()) {
    layout_->slots[slot].since_ns.store(0, std::memory_order_release);
  }
}

std::optional<CallInProgress> CallPage::in_progress(std::uint32_t slot) const {
  if (slot >= layout_->slots.size()) return std::nullopt;
  const auto& entry = layout_->slots[slot];
  const auto since = entry.since_ns.load(std::memory_order_acquire);
  if (since == 0) return std::nullopt;
  const auto function = entry.function.load(std::memory_order_relaxed);
  // Another call began meanwhile: then the function may be its.
  if (entry.since_ns.load(std::memory_order_acquire) != since) return std::nullopt;
  CallInProgress call{"", TimePoint(Duration(since))};
  if (function < layout_->function_count.load(std::memory_order_acquire)) {
    const auto& name = layout_->functions[function];
    call.function.assign(name.data(), ::strnlen(name.data(), name.size()));
  }
  return call;
}

void CallPage::note_crashes() {
  crash_note = &layout_->crashed;
  struct sigaction action {};
  action.sa_handler = note_crash;
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) {
    ::sigaction(number, &action, nullptr);
  }
}

std::optional<std::uint32_t> CallPage::crashed_slot() const {
  const auto note = layout_->crashed.load();
  return note == 0 ? std::nullopt : std::optional(note - 1);
}

void CallPage::clear() {
  layout_->crashed.store(0);
  layout_->function_count.store(0);
  for (auto& slot : layout_->slots) slot.since_ns.store(0);
}

}  // namespace muster
