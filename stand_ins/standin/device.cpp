// Work is counted when it is launched, so that a planted fault strikes the same operation in every
// run, and strikes when it is computed, so that it is told late, as CUDA does.

#include "standin/device.h"

#include <fmt/format.h>
#include <pmmintrin.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

namespace muster::standin {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// As lanes on a CPU do: arithmetic on denormals is many times slower on some CPUs, and streams must
// not differ in it.
void begin_stream() {
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
}

[[noreturn]] void hang() {
  std::promise<void> never;
  for (;;) never.get_future().wait();
}

}  // namespace

Device::Device(DeviceSettings settings, std::unique_ptr<PageStore> store)
    : settings_(std::move(settings)),
      report_(settings_.name, settings_.memory_bytes),
      memory_(std::move(store)) {}

void Device::wait_for_streams() {
  for (const auto& stream : streams_) {
    if (stream) stream->wait_for(stream->last());
  }
}

std::uint64_t Device::memory_limit() const {
  std::uint64_t held = 0;
  if (!settings_.held_file.empty()) std::ifstream(settings_.held_file) >> held;
  return settings_.memory_bytes - std::min(settings_.memory_bytes, held);
}

Stream& Device::stream(std::size_t index) {
  auto& stream = streams_.at(index);
  if (!stream) {
    stream = std::make_unique<Stream>(std::chrono::microseconds(settings_.late_us), &begin_stream);
  }
  return *stream;
}

bool Device::is_planted_full(std::size_t stream) {
  if (!is_counted(stream)) return false;
  const auto first = settings_.full_at_allocation;
  report_.numbers().allocations = ++allocations_;
  return first > 0 && allocations_ >= first && allocations_ < first + settings_.full_count;
}

Stream::Work Device::wrap(std::size_t stream, std::string operation, WorkKind kind,
                          Stream::Work work) {
  std::uint64_t number = 0;  // it has none
  if (is_counted(stream)) {
    if (kind == WorkKind::Kernel) number = ++kernels_;
    if (kind == WorkKind::Copy) number = ++copies_;
  }
  return [this, operation = std::move(operation), kind, number, work = std::move(work)] {
    run(operation, kind, number, work);
  };
}

std::optional<DeviceFailure> Device::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

void Device::run(const std::string& operation, WorkKind kind, std::uint64_t number,
                 const Stream::Work& work) {
  if (failure()) return;
  if (kind == WorkKind::Inner) return compute(operation, work);
  const auto is_at = [&](std::uint64_t kernel, std::uint64_t copy) {
    return number > 0 && number == (kind == WorkKind::Kernel ? kernel : copy);
  };
  if (is_at(settings_.hang_at_kernel, settings_.hang_at_copy)) hang();
  if (is_at(settings_.fail_at_kernel, settings_.fail_at_copy)) {
    return fail(settings_.error, "planted at " + operation);
  }
  const auto begin = std::chrono::steady_clock::now();
  compute(operation, work);
  if (kind == WorkKind::Kernel) {
    std::this_thread::sleep_until(begin + std::chrono::microseconds(settings_.kernel_us));
  }
  if (settings_.is_slow()) {
    const auto more_s = seconds_since(begin) * (settings_.slow_factor - 1);
    std::this_thread::sleep_for(std::chrono::duration<double>(more_s));
  }
  tell(kind, seconds_since(begin));
}

void Device::tell(WorkKind kind, double seconds) {
  constexpr double kNs = 1e9;
  auto& report = report_.numbers();
  report.busy_ns += static_cast<std::uint64_t>(seconds * kNs);
  if (kind == WorkKind::Kernel) ++report.kernels;
  if (kind == WorkKind::Copy) ++report.copies;
}

void Device::compute(const std::string& operation, const Stream::Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    fail(DeviceError::Assert, fmt::format("{}: {}", operation, text.substr(0, text.find('\n'))));
  }
}

// The first failure is the one that is told. Those who open the device after a loss are told by the
// file beside the state file.
void Device::fail(DeviceError error, std::string reason) {
  const MutexLock lock(mutex_);
  if (failure_) return;
  auto& report = report_.numbers();
  report.error = static_cast<std::uint64_t>(error);
  if (const auto xid = xid_of(error)) {
    report.xid = *xid;
    ++report.xid_count;  // behind the code: who sees the count finds it
  }
  failure_ = DeviceFailure{
      error, fmt::format("{} error: {} ({})", settings_.name, device_error_text(error), reason)};
  if (error == DeviceError::DeviceLost && !settings_.state_file.empty()) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::ofstream(settings_.state_file + ".lost")
        << fmt::format("{:.9f}\n", std::chrono::duration<double>(now).count());
  }
}

}  // namespace muster::standin
