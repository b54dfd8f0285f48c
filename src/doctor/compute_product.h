#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "doctor/compute_outcome.h"
#include "spec/device.h"

namespace muster {

struct ComputeTestOptions {
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::string build;  // of this program: the workers' must be the same
  Duration time_per_precision = std::chrono::milliseconds(500);
  Duration limit = std::chrono::minutes(2);  // for all of one device: torch may start from a cold
                                             // network drive
  std::function<void(const std::string& device)> on_start = [](const std::string&) {};
  std::function<void()> on_tick = [] {};  // four times a second while it lasts
};

/// Makes real matrix products in a worker on each device and checks them: all GPUs at once, then
/// all CPU devices at once, which share no core. A device whose worker dies, hangs or answers
/// nonsense has its error; the others go on.
///
/// Threads: the calling one waits. Cost: seconds; torch has to start.
std::vector<ComputeOutcome> test_devices(const std::vector<Device>& devices,
                                         const ComputeTestOptions& options, const Clock& clock);

/// Size of the matrices: 1024 on a CPU, where a lane's fit its caches; 8192 on a GPU, which they
/// fill, or 2048 where less than 4 GB is free.
std::uint32_t product_size(const Device& device);

}  // namespace muster
