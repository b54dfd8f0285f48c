#pragma once

#include <filesystem>

#include "doctor/facts.h"

namespace muster {

/// Reads what the files below `root` and this process's limits say.
///
/// Source: Linux, Documentation/ABI/testing/sysfs-bus-pci (vendor, class), sysfs-devices-system-cpu
/// (online), Documentation/power/powercap/powercap.rst (energy_uj),
/// Documentation/timers/clocksource (current_clocksource); proc(5) (uptime); /proc/driver/nvidia,
/// NVIDIA driver README, chapter "Proc Interface". Threads: thread-safe.
SystemFacts read_system_facts(const std::filesystem::path& root);

/// The file system of `folder`, or of its nearest ancestor where it is not there yet.
///
/// Errors: NotFound, Unavailable.
Result<FolderFacts> read_folder_facts(const std::filesystem::path& folder);

/// How many CPUs a kernel's list names: "0-3,8" -> 5; nullopt where it is no such list.
std::optional<std::uint32_t> count_cpu_list(std::string_view list);

/// The version in /proc/driver/nvidia/version: "NVRM version: NVIDIA UNIX … Kernel Module
/// 580.95.05  …", the first word of digits and dots.
std::optional<std::string> module_version(std::string_view text);

}  // namespace muster
