#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "spec/device.h"
#include "wire/generation_messages.h"

namespace muster {

/// A worker that measures and ends.
struct DecoderProbeOptions {
  Device device;
  std::filesystem::path worker_program;
  std::filesystem::path torch_root;
  std::string build;                             // what the worker's Hello must say
  Duration time_most = std::chrono::minutes(5);  // pauses of this process left out
};

/// Starts a worker, lets it measure and ends it, so that all memory of it is free afterwards. Waits
/// for the answer; `cancelled` is looked at meanwhile.
///
/// Errors: those of WorkerProcess::start and of the measurement (Failed's own); Unsupported (a
/// worker of another build), Unavailable (it dies), DeadlineExceeded (it is not done in time),
/// Cancelled.
Result<DecoderVerdict> probe_decoder(const DecoderProbeOptions& options, const ProbeDecoder& probe,
                                     const Clock& clock, const std::function<bool()>& cancelled);

}  // namespace muster
