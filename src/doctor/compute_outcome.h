#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "spec/device.h"
#include "spec/precision.h"

namespace muster {

/// One precision of a compute test.
struct ProductSpeed {
  Precision precision = Precision::Fp32;
  double flops_per_second = 0;        // of the whole device, the best round
  double busy_share = 1;              // CPU: of that round's time, what the cores were ours
  std::uint32_t rounds = 0;           // how many there were
  std::uint64_t wrong_row_count = 0;  // rows of the product that are not what they must be

  /// What it would have been without the time that others had the cores.
  double own_flops_per_second() const { return flops_per_second / std::max(busy_share, 1e-3); }
};

/// What a real matrix product in a worker on one device has shown.
struct ComputeOutcome {
  Device device;
  std::optional<Error> error;  // it could not be made; `speeds` is empty then
  std::vector<ProductSpeed> speeds;
};

}  // namespace muster
