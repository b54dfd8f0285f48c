#pragma once

#include "spec/device.h"
#include "spec/machine.h"

namespace muster {

/// The machine "here", as it was found: its GPUs, or its CPUs where it has none.
///
/// A GPU's memory is the driver's; how fast it is comes from the catalogue, and is absent for one
/// that is not in it. `links` are those among `inventory.gpus`; where they are not given, or
/// of another number, several GPUs count as linked by the slowest there are, between sockets. Host
/// memory is what the system and the cgroup leave; the CPUs of a machine without GPUs share it in
/// proportion to their nodes' memory, and GPUs that share the machine's memory get their part first
/// and leave the rest: nothing is counted twice.
Machine machine_from(const Inventory& inventory, const LinkMatrix* links = nullptr);

}  // namespace muster
