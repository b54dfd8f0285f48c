#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "spec/standin_device.h"

namespace muster::standin {

/// What becomes of a device that fails, with the number and the words that CUDA has for it. After
/// each of them every call to the device fails, until a new process opens it.
///
/// Source: CUDA 13.0 runtime API, cudaError_t.
enum class DeviceError : std::int32_t {
  EccUncorrectable = 214,
  IllegalAddress = 700,
  LaunchTimeout = 702,
  Assert = 710,
  LaunchFailure = 719,
  DeviceLost = 999,  // cudaErrorUnknown: what a GPU that fell off the bus answers
};
const char* device_error_text(DeviceError error);

/// The XID that a driver reports with it; nullopt: none.
///
/// Source: NVIDIA, XID Errors (r570): 48 double-bit ECC error, 31 GPU memory page fault, 13
/// graphics engine exception, 79 GPU has fallen off the bus.
std::optional<std::uint32_t> xid_of(DeviceError error);

/// What one device has, and what is wrong with it. The words of STANDIN have these names.
struct DeviceSettings {
  std::string name = {};  // "standin:0"
  std::uint64_t memory_bytes = kStandinMemoryBytes;
  std::string held_file = {};    // says how many of them others hold; empty: none
  std::uint64_t late_us = 1000;  // what is not waited for begins so late
  std::uint64_t kernel_us = 0;   // a kernel takes no less, however fast the CPU is

  // Seconds from the first start on; below 0: never.
  double slow_after_s = -1;
  double slow_factor = 10;
  double lie_after_s = -1;      // a bit of every row that goes to the host is wrong
  double recover_after_s = -1;  // neither slow nor lying any more

  // Counted from 1; 0: never.
  std::uint64_t full_at_allocation = 0;  // finds no memory
  std::uint64_t full_count = 1;          // so many in a row
  std::uint64_t fail_at_kernel = 0;
  std::uint64_t fail_at_copy = 0;
  DeviceError error = DeviceError::IllegalAddress;  // of these two
  std::uint64_t hang_at_kernel = 0;
  std::uint64_t hang_at_copy = 0;
  /// 1: work of the default stream does not count, on which a model is loaded; lanes have others.
  std::uint32_t in_lanes = 0;

  std::uint32_t crash_at_start = 0;  // the process ends with 3 at so many starts
  std::uint32_t faulty_starts = 0;   // nothing is wrong after so many; 0: at every start
  double lost_for_s = 0;             // after a loss, so long no new process finds the device
  std::string state_file = {};       // of this device alone: its starts and losses

  bool is_absent = false;    // it was lost by an earlier process
  bool is_crashing = false;  // at this start
  double first_start_s = 0;  // on the monotonic clock; by the state file, else of this process

  bool is_slow() const { return is_due(slow_after_s); }
  bool is_lying() const { return is_due(lie_after_s); }

 private:
  bool is_due(double after_s) const;
};

/// The devices of this process by STANDIN_VISIBLE_DEVICES, with what STANDIN says of each, and this
/// start counted in their state files. Without variables two devices with nothing wrong.
///
///   STANDIN='{"standin:1": {"fail_at_kernel": 100, "error": "ecc"}}'   STANDIN_VISIBLE_DEVICES=1
///
/// "all" speaks of every device, below what is said of it by name. Errors by name are "ecc",
/// "illegal address", "timeout", "assert", "launch failure" and "lost".
///
/// Errors: InvalidArgument for a word, value or device that is none, so that a test cannot misspell
/// one; those of writing a state file.
Result<std::vector<DeviceSettings>> read_settings();

}  // namespace muster::standin
