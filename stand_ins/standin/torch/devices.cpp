// The one machine of a process, and what each thread has chosen of it. Everything else of this
// folder hangs on torch's registries and finds the machine here.

#include "standin/torch/devices.h"

#include <c10/util/Exception.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "standin/host_access.h"

namespace muster::standin {
namespace {

constexpr std::string_view kCrash = "standin: told to crash at its start\n";

std::atomic<bool> is_child = false;

Result<std::unique_ptr<Machine>> open_machine() {
  auto settings = MUSTER_TRY(read_settings());
  for (const auto& device : settings) {
    if (device.is_crashing) {
      (void)!::write(STDERR_FILENO, kCrash.data(), kCrash.size());
      ::_exit(3);
    }
    if (device.is_absent) {
      return Error{ErrorKind::Unavailable, device.name + " is lost: it does not answer"};
    }
  }
  return Machine::open(std::move(settings));
}

// Never destroyed: the threads of its streams may work until the process has ended.
const Result<std::unique_ptr<Machine>>& opened_machine() {
  static const auto* const opened = [] {
    auto* made = new Result<std::unique_ptr<Machine>>(open_machine());  // NOLINT: see above
    if (*made) explain_host_access(***made);
    ::pthread_atfork(nullptr, nullptr, [] { is_child = true; });
    return made;
  }();
  return *opened;
}

thread_local std::size_t current_device = 0;
thread_local std::map<std::size_t, std::size_t> current_streams;  // by device; else the default one

}  // namespace

bool is_forked() noexcept { return is_child; }

Machine& machine() {
  const auto& opened = opened_machine();
  TORCH_CHECK(opened, opened.error().message);
  TORCH_CHECK(!is_forked(), "a forked process cannot use the stand-in device: open it after exec");
  return **opened;
}

std::size_t device_count() noexcept {
  const auto& opened = opened_machine();
  return opened ? (*opened)->device_count() : 0;
}

void check(const Status& status, std::size_t device) {
  if (status) return;
  const auto& error = status.error();
  const c10::SourceLocation here{__func__, __FILE__, __LINE__};
  if (error.kind == ErrorKind::ResourceExhausted) {
    throw c10::OutOfMemoryError(here, error.message);
  }
  const auto failure = machine().failure(device);
  if (error.kind == ErrorKind::Unavailable && failure) {
    throw c10::AcceleratorError(here, static_cast<std::int32_t>(failure->error), error.message);
  }
  throw c10::Error(here, error.message);
}

Place current_place() { return current_place_of(current_device); }

Place current_place_of(std::size_t device) {
  const auto chosen = current_streams.find(device);
  return {device, chosen == current_streams.end() ? 0 : chosen->second};
}

void set_current_device(std::size_t device) {
  TORCH_CHECK(device < device_count(), "there is no such stand-in device: ", device);
  current_device = device;
}

void set_current_stream(Place place) { current_streams[place.device] = place.stream; }

Place place_of(const c10::Stream& stream) {
  return {static_cast<std::size_t>(stream.device_index()), static_cast<std::size_t>(stream.id())};
}

c10::Stream stream_at(Place place) {
  const c10::Device device(c10::DeviceType::PrivateUse1,
                           static_cast<c10::DeviceIndex>(place.device));
  return c10::Stream(c10::Stream::UNSAFE, device, static_cast<c10::StreamId>(place.stream));
}

}  // namespace muster::standin

/// nullptr, or why there is no stand-in device: for whoever opens the library.
extern "C" const char* muster_standin_open() {
  static const std::string reason = [] {
    const auto& opened = muster::standin::opened_machine();
    return opened ? std::string() : opened.error().message;
  }();
  return reason.empty() ? nullptr : reason.c_str();
}
