#include "fake_nvml/fake_clock.h"

#include <sys/mman.h>
#include <time.h>

#include "fake_nvml/mapped_block.h"

namespace muster::fake_nvml {
namespace {

constexpr std::int64_t kSteppedOriginUs = 1'700'000'000'000'000;  // 2023-11-14 22:13:20 UTC

std::int64_t read_clock_ns(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::atomic<std::int64_t>& own_stepped_time() {
  static std::atomic<std::int64_t> time{0};
  return time;
}

Result<FakeClock> FakeClock::make(const Scenario& scenario) {
  FakeClock clock;
  if (scenario.clock == ClockKind::Steady) {
    clock.start_ns_ = read_clock_ns(CLOCK_MONOTONIC);
  } else if (scenario.clock_file.empty()) {
    clock.stepped_ = &own_stepped_time();
  } else {
    void* block = MUSTER_TRY(map_shared(scenario.clock_file, sizeof(std::int64_t)));
    clock.stepped_ = static_cast<std::atomic<std::int64_t>*>(block);
    clock.is_mapped_ = true;
  }
  return clock;
}

FakeClock::FakeClock(FakeClock&& other) noexcept
    : start_ns_(other.start_ns_), stepped_(other.stepped_), is_mapped_(other.is_mapped_) {
  other.is_mapped_ = false;
}

FakeClock::~FakeClock() {
  if (is_mapped_) munmap(stepped_, sizeof(std::int64_t));
}

std::int64_t FakeClock::now_ns() const {
  if (stepped_ != nullptr) return stepped_->load(std::memory_order_acquire);
  return read_clock_ns(CLOCK_MONOTONIC) - start_ns_;
}

std::int64_t FakeClock::wall_us() const {
  if (stepped_ != nullptr) return kSteppedOriginUs + now_ns() / 1000;
  return read_clock_ns(CLOCK_REALTIME) / 1000;
}

void FakeClock::set_ns(std::int64_t now_ns) const {
  if (stepped_ != nullptr) stepped_->store(now_ns, std::memory_order_release);
}

void FakeClock::advance_ns(std::int64_t by_ns) const {
  if (stepped_ != nullptr) stepped_->fetch_add(by_ns, std::memory_order_acq_rel);
}

}  // namespace muster::fake_nvml
