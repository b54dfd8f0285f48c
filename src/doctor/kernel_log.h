#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// An XID that the NVIDIA driver wrote into the kernel's log.
struct KernelXid {
  std::string pci_address;  // "0000:1b:00", as it stands there: no function
  std::uint32_t code = 0;
  double seconds_since_boot = 0;
};

/// The XIDs in records of /dev/kmsg: `6,339,5140900,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, …`.
/// Everything else is passed over.
///
/// Source: Linux, Documentation/ABI/testing/dev-kmsg (the third field is microseconds since boot);
/// NVIDIA, "XID Errors", r580, section "How to Parse XID Error Messages".
std::vector<KernelXid> parse_kernel_log(std::string_view text);

/// The XIDs in `root`/dev/kmsg, a device or a recorded file.
///
/// Errors: NotFound (no such file), Unavailable (this user may not read it).
Result<std::vector<KernelXid>> read_kernel_xids(const std::filesystem::path& root);

/// Whether the log's "0000:1b:00" is the GPU at "00000000:1B:00.0".
bool is_same_pci_place(std::string_view of_log, std::string_view pci_address);

}  // namespace muster
