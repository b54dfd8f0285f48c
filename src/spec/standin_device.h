#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace muster {

/// The stand-in for a GPU (stand_ins/standin), as programs and the library agree on it.

/// Lies beside muster-worker in a build; where it does not, there are no such devices.
inline constexpr std::string_view kStandinLibrary = "libmuster-standin.so";

/// Which of the devices a process has, by their numbers, as CUDA_VISIBLE_DEVICES says it of GPUs.
inline constexpr std::string_view kStandinVisibleVariable = "STANDIN_VISIBLE_DEVICES";

inline constexpr std::uint32_t kStandinCount = 8;
inline constexpr std::uint64_t kStandinMemoryBytes = std::uint64_t{1} << 30;

/// A folder with a file "standin-1" for each device that is to be watched, as drivers let GPUs be
/// watched. The library writes what it knows into those that are there.
inline constexpr std::string_view kStandinReportsVariable = "STANDIN_REPORTS";

/// The content of such a file, mapped by both sides. Counts are of one process, and a new one
/// begins at zero, but for XIDs: those are the driver's. Threads: each number by itself.
struct StandinReport {
  std::atomic<std::uint64_t> pid;  // of the process that has the device; 0: none had it yet
  std::atomic<std::uint64_t> memory_bytes;
  std::atomic<std::uint64_t> taken_bytes;
  std::atomic<std::uint64_t> busy_ns;  // in which a kernel or a copy ran, of all streams together
  std::atomic<std::uint64_t> kernels;
  std::atomic<std::uint64_t> copies;
  std::atomic<std::uint64_t> bytes_to_device;
  std::atomic<std::uint64_t> bytes_to_host;
  std::atomic<std::uint64_t> full;   // times that memory was asked for which was not there
  std::atomic<std::uint64_t> error;  // CUDA's number for why it computes no more; 0: it computes
  std::atomic<std::uint64_t> allocations;  // those that `full_at_allocation` counts
  std::atomic<std::uint64_t> xid;          // the last one that was reported,
  std::atomic<std::uint64_t> xid_count;    // and how many were
};

}  // namespace muster
