#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "doctor/availability.h"
#include "spec/device.h"
#include "sweep/point_record.h"
#include "sweep/sweep_config.h"

namespace muster {

/// The devices that a file names, and which of them can be used.
struct SweepDevices {
  PointAvailability all;                             // over all lists, each device once
  std::map<std::string, PointAvailability> by_list;  // of each list of the file
  std::map<std::string, std::string> used;           // of each list: what of it is there
  std::map<std::string, std::string> machines = {};  // SweepFacts::machines
};

/// Looks for every device that the file names: whether it is here, answers, and is fit, as
/// `muster doctor` judges it without computing.
///
/// Errors: InvalidArgument (no name of a device; more than the setting device_count_most leaves to
/// a server that is started here), with its place in the file; those of looking for devices.
Result<SweepDevices> check_sweep_devices(const CommandContext& context, const SweepConfig& config);

/// What of a list is there: devices by the names that results have, whatever they were called. Only
/// "2xcpu" stays, since its cpu:0 is a half of what cpu:0 alone is.
///
/// names: as --devices takes them, no rule. point: what was found of them. Threads: pure.
std::string used_devices(const std::string& names, const PointAvailability& point);

/// What tells the hardware of a point from another of the same names: the CPU and how many of its
/// logical CPUs there are, model and UUID of each GPU that can be used, cores of the CPU devices.
/// Threads: pure.
std::string hardware_of(const Availability& found, const Inventory& inventory);

/// The GPUs that are lost are devices that were asked for and cannot be used where a list means all
/// of them ("auto", "cuda"): each with its driver's words, where `found` does not say them already.
/// "2xcuda" is met by any two that work.
///
/// most: no more devices are used (device_count_most); none is missing where so many were found and
/// a GPU is left. Threads: pure.
void add_lost_gpus(const std::string& list, const Inventory& inventory, Availability& found,
                   std::optional<std::uint32_t> most = std::nullopt);

/// The devices that a list means here and that are fit, for a file that is to be written. Of GPUs
/// that are lost and that it could have meant it warns.
///
/// Errors: those of parse_devices and of looking for devices; Unavailable (none is fit).
Result<std::vector<Device>> fit_devices(const CommandContext& context, const std::string& list);

/// The check in lines for people: what was asked for, what is there, and why the rest is not.
std::vector<std::string> availability_lines(const PointAvailability& availability);

/// Errors: NotFound where a device is missing, with the flag that goes on without it.
Status refuse_missing(const SweepConfig& config, const PointAvailability& availability);

}  // namespace muster
