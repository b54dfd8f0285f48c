// Rates of links, and a counter that wraps in 32 bits. A fall of the counter is one wrap, provided
// that a full link could not have carried a whole turn in between; otherwise nothing is added and
// nothing is shown, since a wrong byte count would stay wrong for good.

#include "hw/nvml/nvml_pcie.h"

#include <array>

namespace muster {
namespace {

constexpr double kWrap = 4294967296.0;

}  // namespace

std::optional<double> pcie_bytes_per_second(std::uint32_t generation, std::uint32_t lanes) {
  constexpr std::array kPerLane{2.5e9 / 8 * 8 / 10,   5e9 / 8 * 8 / 10,     8e9 / 8 * 128 / 130,
                                16e9 / 8 * 128 / 130, 32e9 / 8 * 128 / 130, 64e9 / 8 * 242 / 256};
  if (generation == 0 || generation > kPerLane.size() || lanes == 0) return std::nullopt;
  return kPerLane[generation - 1] * lanes;
}

void PcieByteCounter::add(std::optional<double> raw, TimePoint at) {
  if (!raw) {
    is_known_ = false;
    return;
  }
  if (!last_) {
    is_known_ = true;
  } else {
    const double span_bytes_max =
        bytes_per_second_max_ ? *bytes_per_second_max_ * seconds(at - last_at_) : kWrap;
    // A counter that has once gone beyond 32 bits does not wrap there.
    is_known_ = *last_ >= kWrap || *raw >= kWrap || span_bytes_max < kWrap;
    const double step = *raw < *last_ ? *raw + kWrap - *last_ : *raw - *last_;
    if (is_known_ && step >= 0 && step < kWrap) bytes_ += step;
  }
  last_ = raw;
  last_at_ = at;
}

}  // namespace muster
