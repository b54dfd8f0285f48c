#include "fake_nvml/driver.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fake_nvml/statistics.h"

namespace muster::fake_nvml {
namespace {

// How often a call that hangs looks whether its time is over: a clock in a file tells nobody.
constexpr auto kHangPoll = std::chrono::milliseconds(2);
// Below this a delay is spent in the call, as the driver's own work is; above, the caller sleeps.
constexpr double kSpinMaxUs = 100;

/// The driver and those before it that a hung call still uses.
struct Loaded {
  std::mutex mutex;
  int init_count = 0;
  std::unique_ptr<Driver> current;
  std::vector<std::unique_ptr<Driver>> retired;
  std::atomic<Driver*> active{nullptr};
};

Loaded& loaded() {
  static Loaded state;
  return state;
}

Result<std::unique_ptr<Driver>> load_from_environment() {
  const char* const file = std::getenv("FAKENVML_SCENARIO");
  if (file == nullptr || *file == '\0') return Driver::load(default_scenario(kLibraryGeneration));
  auto scenario = MUSTER_TRY(read_scenario(file, kLibraryGeneration));
  return Driver::load(std::move(scenario));
}

}  // namespace

Driver::Driver(Scenario scenario, FakeClock clock)
    : scenario_(std::move(scenario)), clock_(std::move(clock)) {
  for (const auto& gpu : scenario_.gpus) gpus_.push_back(std::make_unique<GpuState>(gpu));
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) handles_.push_back({i, nullptr});
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) {
    if (!gpus_[i]->spec.mig) continue;
    for (const auto& slice : *gpus_[i]->spec.mig) handles_.push_back({i, &slice});
  }
}

Result<std::unique_ptr<Driver>> Driver::load(Scenario scenario) {
  auto clock = MUSTER_TRY(FakeClock::make(scenario));
  if (!scenario.statistics_file.empty()) MUSTER_TRY(count_in_file(scenario.statistics_file));
  return std::unique_ptr<Driver>(new Driver(std::move(scenario), std::move(clock)));
}

DeviceHandle Driver::handle_of(std::uint32_t gpu) const {
  return const_cast<DeviceHandle>(&handles_[gpu]);
}

DeviceHandle Driver::handle_of(std::uint32_t gpu, const MigSlice& slice) const {
  const auto found = std::find_if(handles_.begin(), handles_.end(), [&](const HandleState& state) {
    return state.gpu == gpu && state.slice == &slice;
  });
  return const_cast<DeviceHandle>(&*found);
}

std::optional<DeviceHandle> Driver::find_uuid(std::string_view uuid) const {
  for (const auto& state : handles_) {
    const auto& own = state.slice != nullptr ? state.slice->uuid : gpus_[state.gpu]->spec.uuid;
    if (own == uuid) return const_cast<DeviceHandle>(&state);
  }
  return std::nullopt;
}

const HandleState* Driver::check(DeviceHandle handle) const {
  const HandleState* const state = handle;
  const auto begin = reinterpret_cast<std::uintptr_t>(handles_.data());
  const auto place = reinterpret_cast<std::uintptr_t>(state);
  const bool is_ours = place >= begin && place < begin + handles_.size() * sizeof(HandleState) &&
                       (place - begin) % sizeof(HandleState) == 0;
  return is_ours ? state : nullptr;
}

void spend_time(double us) {
  if (us <= 0) return;
  const auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(us * 1e3));
  const auto end = std::chrono::steady_clock::now() + time;
  if (us > kSpinMaxUs) std::this_thread::sleep_until(end);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void Driver::hang(const Fault& fault) {
  ++hung_calls_;
  while (fault.span.covers(seconds(clock_.now_ns()))) std::this_thread::sleep_for(kHangPoll);
  --hung_calls_;
}

int Driver::before(Function function, std::optional<std::uint32_t> gpu) {
  spend_time(scenario_.delays_us[static_cast<std::size_t>(function)]);
  const auto& faults = scenario_.faults[static_cast<std::size_t>(function)];
  for (const auto& fault : faults) {
    const bool is_meant =
        fault.gpus.empty() ||
        (gpu && std::find(fault.gpus.begin(), fault.gpus.end(), *gpu) != fault.gpus.end());
    if (!is_meant || !fault.span.covers(seconds(clock_.now_ns()))) continue;
    if (fault.kind == FaultKind::Error) return fault.code;
    if (fault.kind == FaultKind::Crash) std::raise(SIGSEGV);
    if (fault.kind == FaultKind::Hang) hang(fault);
  }
  return kSuccess;
}

int Driver::field_fault(std::uint32_t field, std::uint32_t gpu, std::int64_t now_ns) const {
  if (scenario_.field_faults.empty()) return kSuccess;
  const auto found = scenario_.field_faults.find(field);
  if (found == scenario_.field_faults.end()) return kSuccess;
  for (const auto& fault : found->second) {
    const bool is_meant = fault.gpus.empty() ||
                          std::find(fault.gpus.begin(), fault.gpus.end(), gpu) != fault.gpus.end();
    if (is_meant && fault.span.covers(seconds(now_ns))) return fault.code;
  }
  return kSuccess;
}

std::optional<std::uint64_t> Visit::count(ValueId id) const {
  const auto value = gpu.sensor.value(id, now_ns, 0);
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

Driver* loaded_driver() { return loaded().active.load(std::memory_order_acquire); }

int init_driver() {
  auto& state = loaded();
  const std::lock_guard lock(state.mutex);
  if (state.init_count > 0) {
    ++state.init_count;
    return kSuccess;
  }
  auto driver = load_from_environment();
  if (!driver) {
    std::fprintf(stderr, "libfakenvml: %s\n", driver.error().message.c_str());
    return kUnknown;
  }
  if (const int code = (*driver)->before(Function::nvmlInit_v2, std::nullopt); code != kSuccess) {
    return code;
  }
  std::erase_if(state.retired, [](const auto& old) { return !old->has_hung_calls(); });
  state.current = *std::move(driver);
  state.active.store(state.current.get(), std::memory_order_release);
  state.init_count = 1;
  return kSuccess;
}

int shutdown_driver() {
  auto& state = loaded();
  const std::lock_guard lock(state.mutex);
  if (state.init_count == 0) return kUninitialized;
  if (--state.init_count > 0) return kSuccess;
  state.active.store(nullptr, std::memory_order_release);
  // Kept until the next start: a call that hangs in it may yet come back.
  state.retired.push_back(std::move(state.current));
  return kSuccess;
}

int copy_text(std::string_view text, char* out, unsigned size) {
  if (out == nullptr) return kInvalidArgument;
  if (text.size() + 1 > size) return kInsufficientSize;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return kSuccess;
}

}  // namespace muster::fake_nvml
