#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "hw/nvml/nvml_visit.h"

namespace muster {

/// An entry of a process list, whatever its layout.
struct NvmlProcess {
  std::uint32_t pid = 0;
  std::optional<std::uint64_t> memory_bytes;
};

/// How the entries of a process list are laid out.
struct NvmlProcessLayout {
  bool is_v1 = false;        // 16 bytes
  bool may_be_long = false;  // the driver is one of those that may write 32 bytes instead of 24
};

/// What marks bytes that a driver has not written.
inline constexpr unsigned char kNvmlUnwritten = 0xA5;

/// The entries in a buffer that was filled with `kNvmlUnwritten` and had room for
/// buffer.size() / 32 entries, of which the driver says it wrote `count`.
///
/// The size of an entry is told by what was written: beyond 24 bytes each only long entries reach,
/// or a driver that cleans the whole buffer, whose entries then have no process 0 among them.
/// Source: nvml.h 13.3, nvmlProcessInfo_v1_t, _v2_t; nvitop on the 535 series' 32-byte entries.
std::vector<NvmlProcess> parse_nvml_processes(std::span<const unsigned char> buffer,
                                              std::size_t count, NvmlProcessLayout layout);

/// The processes on a GPU or a slice: those of MPS clients as such, each process once.
///
/// Threads: not thread-safe; owned by one sampler.
class NvmlProcesses {
 public:
  /// root: in front of /proc, where a process's name is read. A PID that is not there is of another
  /// pid namespace; then the driver is asked for the name.
  explicit NvmlProcesses(std::filesystem::path root) : root_(std::move(root)) {}

  void read(NvmlVisit& visit, NvmlDevice device);

 private:
  std::optional<std::vector<NvmlProcess>> list(NvmlVisit& visit, NvmlDevice device,
                                               const NvmlFunctions::Processes& function,
                                               NvmlOffer& offer);
  GpuProcess name(NvmlVisit& visit, const NvmlProcess& process, GpuProcessKind kind) const;

  std::filesystem::path root_;
  std::vector<unsigned char> buffer_;
  NvmlOffer compute_ = NvmlOffer::Unknown;
  NvmlOffer graphics_ = NvmlOffer::Unknown;
  NvmlOffer mps_ = NvmlOffer::Unknown;
};

}  // namespace muster
