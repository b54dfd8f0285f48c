#pragma once

#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "hw/device_sampler.h"
#include "spec/telemetry.h"
#include "wire/telemetry_messages.h"

namespace muster {

/// What is watched: the machine, its sources, and a sampler for each of its devices.
struct OpenedSources {
  WatchedMachine machine;
  std::vector<DeviceSource> sources;
  std::vector<DeviceSampler*> samplers;      // of machine.devices; nullptr: left out
  std::vector<std::uint32_t> first_devices;  // of each source, as an index into machine.devices
};

/// By what a device is known from one start of the sampler to the next: its UUID, else its PCI
/// address, else its name.
std::string device_key(const DeviceIdentity& identity);

/// Opens the simulated machine, or the drivers that are here: NVIDIA's, AMD's, and the CPUs. A
/// driver that is not there is no error but `gpu_absent_reason`.
///
/// Errors: InvalidArgument, NotFound, Corrupt (the simulated machine); Unavailable (the CPUs cannot
/// be read).
Result<OpenedSources> open_sources(const Watch& watch, const Clock& clock, CallWatch& calls);

}  // namespace muster
