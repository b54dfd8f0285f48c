// Figures of boards that only a simulation needs. A type of unknown power has no row rather than a
// guess, and a clock that no source gives is absent: what is shown of a simulated GPU is then
// missing instead of wrong. Names are those of the catalogue of GPUs, by which rows are found.

#include "hw/simulated/simulated_boards.h"

#include <algorithm>
#include <array>

namespace muster {
namespace {

constexpr double mhz(double value) { return value * 1e6; }
constexpr auto kAbsent = std::nullopt;

constexpr std::array kBoards{
    SimulatedBoard{"P100-16G", 300, kAbsent, kAbsent, false},
    SimulatedBoard{"P40-24G", 250, kAbsent, kAbsent, false},
    SimulatedBoard{"V100-16G", 300, mhz(1530), mhz(877), false},
    SimulatedBoard{"V100-32G", 300, mhz(1530), mhz(877), false},
    SimulatedBoard{"V100-PCIE-16G", 250, mhz(1380), mhz(877), false},
    SimulatedBoard{"V100-PCIE-32G", 250, mhz(1380), mhz(877), false},
    SimulatedBoard{"T4-16G", 70, mhz(1590), mhz(5001), false},
    SimulatedBoard{"RTX8000-48G", 295, kAbsent, kAbsent, false},
    SimulatedBoard{"A10-24G", 150, mhz(1695), mhz(6251), false},
    SimulatedBoard{"A10G-24G", 300, mhz(1710), mhz(6251), false},
    SimulatedBoard{"A30-24G", 165, mhz(1440), mhz(1215), false},
    SimulatedBoard{"A40-48G", 300, mhz(1740), mhz(7251), false},
    SimulatedBoard{"A100-40G", 400, mhz(1410), mhz(1215), false},
    SimulatedBoard{"A100-80G", 400, mhz(1410), mhz(1593), false},
    SimulatedBoard{"A100-PCIE-40G", 250, mhz(1410), mhz(1215), false},
    SimulatedBoard{"A100-PCIE-80G", 300, mhz(1410), mhz(1512), false},
    SimulatedBoard{"RTX3080-10G", 320, kAbsent, kAbsent, false},
    SimulatedBoard{"RTX3090-24G", 350, kAbsent, kAbsent, false},
    SimulatedBoard{"RTXA5000-24G", 230, kAbsent, kAbsent, false},
    SimulatedBoard{"RTXA6000-48G", 300, kAbsent, kAbsent, false},
    SimulatedBoard{"L4-24G", 72, mhz(2040), mhz(6251), false},
    SimulatedBoard{"L40-48G", 300, mhz(2490), mhz(9001), false},
    SimulatedBoard{"L40S-48G", 350, mhz(2520), mhz(9001), false},
    SimulatedBoard{"RTX4080-16G", 320, kAbsent, kAbsent, false},
    SimulatedBoard{"RTX4090-24G", 450, kAbsent, kAbsent, false},
    SimulatedBoard{"RTX6000ADA-48G", 300, kAbsent, kAbsent, false},
    SimulatedBoard{"H100-80G", 700, mhz(1980), mhz(2619), true},
    SimulatedBoard{"H100-PCIE-80G", 350, mhz(1755), mhz(1593), true},
    SimulatedBoard{"H100-NVL-94G", 400, mhz(1785), mhz(2619), true},
    SimulatedBoard{"H200-141G", 700, mhz(1980), mhz(3201), true},
    SimulatedBoard{"H200-NVL-141G", 600, mhz(1785), mhz(3201), true},
    SimulatedBoard{"B200-180G", 1000, mhz(1965), mhz(3996), true},
    SimulatedBoard{"RTX5080-16G", 360, kAbsent, kAbsent, false},
    SimulatedBoard{"RTX5090-32G", 575, kAbsent, kAbsent, false},
    SimulatedBoard{"RTXPRO6000-96G", 600, kAbsent, kAbsent, false},
    SimulatedBoard{"MI210-64G", 300, mhz(1700), mhz(1600), false},
    SimulatedBoard{"MI300X-192G", 750, mhz(2100), mhz(1300), false},
    SimulatedBoard{"MI325X-256G", 1000, mhz(2100), kAbsent, false},
    SimulatedBoard{"RX7900XTX-24G", 355, kAbsent, kAbsent, false},
};

}  // namespace

const SimulatedBoard* find_simulated_board(std::string_view name) {
  const auto* found = std::find_if(kBoards.begin(), kBoards.end(),
                                   [&](const SimulatedBoard& board) { return board.name == name; });
  return found == kBoards.end() ? nullptr : found;
}

}  // namespace muster
