#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace muster {

/// Bytes per second that a PCIe link carries in one direction, headers counted; nullopt for a
/// generation that is not known. Source: PCI Express Base Specification: 2.5, 5 (8b/10b), 8, 16, 32
/// (128b/130b) and 64 GT/s (256-byte flits of 242) a lane.
std::optional<double> pcie_bytes_per_second(std::uint32_t generation, std::uint32_t lanes);

/// A counter of PCIe bytes, followed across its wraps. The driver counts in 32 bits (4 GiB: 136 ms
/// of a full x16 link of generation 4), whatever type the value is sent in.
///
/// A span in which more than one wrap could have taken place tells nothing: then there is no value
/// until the next reading, and the count goes on from there. A reset of the GPU looks like a wrap.
/// Source: NVIDIA/open-gpu-kernel-modules, ctrl2080bus.h, NV2080_CTRL_BUS_GET_PEX_UTIL_COUNTERS
/// (NvU32); nvml.h 13.3 on NVML_FI_DEV_PCIE_COUNT_TX_BYTES: "Value can be wrapped".
class PcieByteCounter {
 public:
  /// bytes_per_second_max: of the link; nullopt: not known, then nothing can be told from wraps.
  explicit PcieByteCounter(std::optional<double> bytes_per_second_max)
      : bytes_per_second_max_(bytes_per_second_max) {}

  /// raw: the counter at `at`; nullopt: it was not read.
  void add(std::optional<double> raw, TimePoint at);

  /// Bytes since the first reading; nullopt: not known now.
  std::optional<double> bytes() const { return is_known_ ? std::optional(bytes_) : std::nullopt; }

 private:
  std::optional<double> bytes_per_second_max_;
  std::optional<double> last_;
  TimePoint last_at_;
  double bytes_ = 0;
  bool is_known_ = false;
};

}  // namespace muster
