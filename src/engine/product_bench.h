#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "spec/device.h"
#include "spec/test_product.h"

namespace muster::engine {

/// C = A B of a TestProduct on one device, again and again.
///
/// Threads: `multiply` and `images` of different lanes may run at once, each in a thread that has
/// called `enter_lane()`; of one lane one after another.
class ProductBench {
 public:
  /// Puts A and B onto the device, and room for C for each lane.
  ///
  /// Errors: Unsupported (no such device), ResourceExhausted, Internal.
  static Result<std::unique_ptr<ProductBench>> load(const TestProduct& product, DeviceKind device,
                                                    std::uint32_t lane_count);
  ~ProductBench();

  /// Makes one product in a lane and waits until it is there.
  Status multiply(std::uint32_t lane);

  /// C x of the lane's last product, summed in doubles on the CPU. Shapes: [kImageCount, size].
  Result<std::vector<double>> images(std::uint32_t lane) const;

 private:
  struct Parts;
  explicit ProductBench(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace muster::engine
