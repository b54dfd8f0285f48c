#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/device.h"

namespace muster {

/// The devices that a text names, in its order. Names are separated by commas:
///
///   auto        every usable GPU, else a CPU device for each NUMA node
///   cpu, cuda   every device of that kind
///   cpu:0       one of them; cuda:1, and cuda:1:0 for a MIG slice of it
///   2xcpu       cpu:0 and cpu:1, which share the allowed cores evenly without overlap
///   2xcuda      the first two visible GPUs
///   2xstandin   the first two stand-ins for GPUs, where there are any: never by auto
///   GPU-5e…     a GPU by UUID, or by any beginning of it that fits only one
///
/// More CPU devices than cores share the logical CPUs instead, where there are more of those.
/// `cores_per_device` bounds the cores of each CPU device, and the devices of one count do not
/// overlap.
///
/// Errors: InvalidArgument (not a name, with the nearest right one; a device twice; more devices
/// than cores), NotFound (no such device, naming those that are there), Unavailable (a GPU that is
/// lost, in its driver's words; no GPU or stand-in, with the reason), Unsupported (sim, rocm and
/// mps devices: nothing here can run on them). Threads: pure.
Result<std::vector<Device>> parse_devices(std::string_view text, const Inventory& inventory,
                                          std::optional<std::uint32_t> cores_per_device);

/// The name that somebody who wrote `given` means by a habit of other programs, where there is one:
/// "gpu" is cuda, "gpu:1" and "1" are cuda:1, "cuda1" is cuda:1, "2cpu" is 2xcpu, "cpu:0-2" is
/// cpu:0,cpu:1,cpu:2, "all" is auto. Threads: pure.
std::optional<std::string> device_name_meant(std::string_view given);

/// True where `word` has the form of one device's name, whatever there is: "cuda:1", "2xcpu",
/// "GPU-5e00". Threads: pure.
bool is_device_name_form(std::string_view word);

/// "cuda:0 is lost: GPU is lost (NVML 15)" of each GPU that is, in its driver's words, with "; "
/// between them; empty: none is. Threads: pure.
std::string lost_gpus_text(const Inventory& inventory);

/// True where part of a text for parse_devices means GPUs without a number, so that one that is
/// lost is passed over: "auto", "cuda", "2xcuda". Threads: pure.
bool takes_gpus_there_are(std::string_view text);

/// True where part of such a text means every GPU: "auto", "cuda". Threads: pure.
bool takes_all_gpus(std::string_view text);

/// True when a GPU could be meant, so that the driver need not start for "2xcpu".
bool may_name_gpus(std::string_view text);

}  // namespace muster
