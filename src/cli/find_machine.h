#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "spec/device.h"
#include "spec/telemetry.h"

namespace muster {

/// This machine, and how its GPUs are linked.
struct FoundMachine {
  Inventory inventory;
  LinkMatrix links;  // among `inventory.gpus`; empty where they are not all whole GPUs
};

/// Which of the GPUs that are lost have their driver's words: those that CUDA_VISIBLE_DEVICES does
/// not hide on purpose, or each, for whoever gives GPUs to a program that does not read it.
enum class ToldLosses : std::uint8_t { Meant, All };

/// What this machine has. The GPUs are asked for by a sampler process, so that a driver that hangs
/// costs a time limit and no more; its silence, like its absence, is `gpu_absent_reason`. A GPU
/// that is lost stays in the list, with its driver's words (lost_gpus.h).
///
/// look_for_gpus: false spares all of that where only CPUs are wanted.
/// Errors: NotFound (a setting names no file or folder), Unavailable (no topology of the CPUs).
Result<FoundMachine> find_machine(const Config& config, const Clock& clock, bool look_for_gpus,
                                  ToldLosses losses = ToldLosses::Meant);

/// What a new program can have of the host's memory now, within the cgroups; nullopt: that cannot
/// be told. Threads: thread-safe.
std::optional<std::uint64_t> available_memory(const Config& config);

/// The NVIDIA GPUs of a watched machine as devices for work: slices instead of a GPU that is split,
/// and those that a CUDA program would not see marked with `visible`, the value of
/// CUDA_VISIBLE_DEVICES. So are those that a worker could not be given alone: without a UUID and
/// where their number is not certain, as that of one that its driver does not open. Threads: pure.
std::vector<Device> devices_for_work(const WatchedMachine& machine,
                                     const std::optional<std::string>& visible);

}  // namespace muster
