#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

// How a worker is started, by which it is known among the processes of a machine.

/// The name of its process, as the kernel shows it (proc(5), /proc/PID/comm).
inline constexpr std::string_view kWorkerCommand = "muster-worker";

/// Before the name of its device: "--device cuda:1".
inline constexpr std::string_view kWorkerDeviceFlag = "--device";

/// Before the descriptor of the pipe that ends with the process (base/liveness_pipe.h).
inline constexpr std::string_view kWorkerLivenessFlag = "--liveness-fd";

/// Before an argument of kWorkerModelsRoom bytes, kWorkerModelsBlank each, over which the worker
/// writes the names of the models that it has loaded.
inline constexpr std::string_view kWorkerModelsFlag = "--models";
inline constexpr std::size_t kWorkerModelsRoom = 200;
inline constexpr char kWorkerModelsBlank = '.';

}  // namespace muster
