#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "containers/rocm_devices.h"
#include "deploy/container_request.h"
#include "spec/device.h"

namespace muster {

/// What this machine has for containers.
struct ContainerHost {
  Inventory inventory;
  RocmHost rocm;
};

/// Devices as a container gets them, and what to tell people about them.
struct ChosenDevices {
  std::vector<ContainerDevice> devices;
  std::vector<std::uint32_t> group_ids;  // of AMD's device files
  std::vector<std::string> notes;
};

/// What `--devices` names, in its order. Words are separated by commas:
///
///   cuda, cuda:1, 2xcuda, GPU-5e…   NVIDIA GPUs of this machine; another's UUID as written
///   rocm, rocm:0, 2xrocm            AMD GPUs of this machine
///   /dev/dri/renderD129             one by its render node
///   MIG-…                           a slice by UUID; mig-1g.5gb, 2xmig-1g.5gb: by profile
///   nvidia.com/gpu=0                a CDI device
///   none, cpu                       no device
///   cpu:0, 2xcpu                    no device, with a note that all cores are used
///
/// may_be_elsewhere: nothing is started here, so where this machine has no GPU of that vendor at
/// all, indices are taken as written, with a note.
///
/// A GPU that is lost is passed over by "cuda" and "2xcuda", with a note in its driver's words.
///
/// Errors: InvalidArgument (no name, with the nearest right one; twice the same; "none" beside
/// others), NotFound (no such device, naming those that are there), Unavailable (no GPU of that
/// vendor, with the reason; one that is lost, in its driver's words), Unsupported (mps). Threads:
/// pure.
Result<ChosenDevices> parse_container_devices(const std::vector<std::string>& words,
                                              const ContainerHost& host, bool may_be_elsewhere);

/// A GPU of this machine as a container gets it: by UUID, whatever the order inside.
ContainerDevice container_device(const Device& gpu);

/// A device that could hold a part of a model.
struct DeviceCandidate {
  std::string name;              // "cuda:1"
  std::uint64_t free_bytes = 0;  // that a new program can have
};

/// The fewest devices that hold `needed_bytes` together, those with the most free memory first,
/// and that the server can split the model over; given in the machine's order.
///
/// Errors: ResourceExhausted, saying how much is there; Unavailable when there is no device.
/// Threads: pure.
Result<std::vector<std::string>> choose_devices(std::span<const DeviceCandidate> candidates,
                                                std::uint64_t needed_bytes, ServerApi api,
                                                const ModelHeads& heads);

}  // namespace muster
