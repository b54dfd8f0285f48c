#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fake_nvml/fake_clock.h"
#include "fake_nvml/nvml_abi.h"
#include "fake_nvml/scenario.h"
#include "fake_nvml/sensor.h"

namespace muster::fake_nvml {

struct GpuState {
  explicit GpuState(const FakeGpu& gpu) : spec(gpu), sensor(spec) {}
  GpuState(const GpuState&) = delete;

  const FakeGpu spec;
  const Sensor sensor;
};

/// What a device handle points to: a GPU, or a slice of one.
struct HandleState {
  std::uint32_t gpu = 0;
  const MigSlice* slice = nullptr;
};

/// The loaded scenario. Immutable but for its clock.
///
/// Threads: thread-safe.
class Driver {
 public:
  /// Errors: those of the scenario and of the clock's and the statistics' file.
  static Result<std::unique_ptr<Driver>> load(Scenario scenario);

  const Scenario& scenario() const { return scenario_; }
  const FakeClock& clock() const { return clock_; }
  std::uint32_t gpu_count() const { return static_cast<std::uint32_t>(gpus_.size()); }
  const GpuState& gpu(std::uint32_t index) const { return *gpus_[index]; }

  DeviceHandle handle_of(std::uint32_t gpu) const;
  DeviceHandle handle_of(std::uint32_t gpu, const MigSlice& slice) const;
  std::optional<DeviceHandle> find_uuid(std::string_view uuid) const;
  /// nullptr when the handle is none of ours.
  const HandleState* check(DeviceHandle handle) const;

  /// What the scenario does to a call before it is answered: delays, hangs, crashes, errors.
  /// kSuccess: answer it. gpu: nullopt when the call is about none.
  int before(Function function, std::optional<std::uint32_t> gpu);
  /// The error of a field of nvmlDeviceGetFieldValues; kSuccess where there is none.
  int field_fault(std::uint32_t field, std::uint32_t gpu, std::int64_t now_ns) const;

  bool has_hung_calls() const { return hung_calls_.load() > 0; }

 private:
  Driver(Scenario scenario, FakeClock clock);
  void hang(const Fault& fault);

  const Scenario scenario_;
  const FakeClock clock_;
  std::vector<std::unique_ptr<GpuState>> gpus_;
  std::vector<HandleState> handles_;  // the GPUs, then all slices
  std::atomic<int> hung_calls_{0};
};

/// Spends so many microseconds as a call of a driver does.
void spend_time(double us);

/// The driver between nvmlInit and nvmlShutdown; nullptr outside.
Driver* loaded_driver();

int init_driver();
int shutdown_driver();

/// Calls of each function so far, over all times that the driver was loaded; of a scenario with a
/// statistics file, of every process that uses it.
void count_call(Function function);
std::uint64_t call_count(Function function);
/// Errors: those of the file.
Status count_in_file(const std::filesystem::path& path);

/// The series of drivers whose symbols this library has.
extern const std::uint32_t kLibraryGeneration;

/// One call of a device: what its answer is worked out of.
struct Visit {
  Driver& driver;
  const HandleState& handle;
  const GpuState& gpu;
  std::int64_t now_ns;

  const FakeGpu& spec() const { return gpu.spec; }
  const MigSlice* slice() const { return handle.slice; }
  /// A count or a code of the scenario, 0 where it says nothing; nullopt: not supported.
  std::optional<std::uint64_t> count(ValueId id) const;
};

/// Counts the call, lets the scenario interfere, and answers with `body(visit)`.
template <typename Body>
int answer(Function function, DeviceHandle handle, Body body) {
  count_call(function);
  Driver* const driver = loaded_driver();
  if (driver == nullptr) return kUninitialized;
  const HandleState* const state = driver->check(handle);
  if (state == nullptr) return kInvalidArgument;
  if (const int code = driver->before(function, state->gpu); code != kSuccess) return code;
  const GpuState& gpu = driver->gpu(state->gpu);
  const Visit visit{*driver, *state, gpu, driver->clock().now_ns()};
  if (gpu.spec.lost && gpu.spec.lost->covers(seconds(visit.now_ns))) return kGpuIsLost;
  return body(visit);
}

/// The same for a whole GPU: a MIG slice does not offer this.
template <typename Body>
int answer_gpu(Function function, DeviceHandle handle, Body body) {
  return answer(function, handle, [&](const Visit& visit) -> int {
    if (visit.slice() != nullptr) return kNotSupported;
    return body(visit);
  });
}

/// The same for what is about no device.
template <typename Body>
int answer_system(Function function, Body body) {
  count_call(function);
  Driver* const driver = loaded_driver();
  if (driver == nullptr) return kUninitialized;
  if (const int code = driver->before(function, std::nullopt); code != kSuccess) return code;
  return body(*driver);
}

/// Copies a text and its end into a caller's buffer; kInsufficientSize when it is too small.
int copy_text(std::string_view text, char* out, unsigned size);

}  // namespace muster::fake_nvml

/// What stands before every function that the library exports.
#define FAKENVML_EXPORT extern "C" __attribute__((visibility("default")))
