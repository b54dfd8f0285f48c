#pragma once

#include <vector>

#include "doctor/check.h"
#include "doctor/facts.h"

namespace muster {

/// Every check that docs/doctor.md lists, in its order: the driver, each device, the system, the
/// programs, the compute tests. Threads: pure.
std::vector<Check> check_all(const DoctorFacts& facts);

/// The parts of it.
std::vector<Check> check_driver(const DoctorFacts& facts);
std::vector<Check> check_device(const DeviceStatus& status, const DoctorFacts& facts);
std::vector<Check> check_links(const DoctorFacts& facts);
std::vector<Check> check_system(const DoctorFacts& facts);
std::vector<Check> check_programs(const DoctorFacts& facts);
std::vector<Check> check_compute(const DoctorFacts& facts);

/// Adds what the kernel's log says of XIDs to those that the collector has counted, where the log
/// knows of more, and judges those devices anew. The collector sees only what happens while it
/// watches.
void merge_kernel_xids(DoctorFacts& facts);

}  // namespace muster
