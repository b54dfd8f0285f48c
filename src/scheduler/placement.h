#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/dispatch_books.h"
#include "scheduler/dispatch_options.h"

namespace muster {

/// Where a text goes, and why.
struct Placement {
  std::size_t device = 0;
  std::string reason;
};

/// The strategies that bind a text when it comes; docs/strategies.md.
///
/// Pure. Threads: owned by one loop.
class Placer {
 public:
  explicit Placer(std::size_t device_count) : credits_(device_count, 0) {}

  /// nullopt: no device is eligible, or the strategy binds late.
  std::optional<Placement> place(const DispatchOptions& options, const DispatchBooks& books,
                                 const DispatchItem& item);

 private:
  using Devices = std::vector<std::size_t>;

  Placement round_robin(const DispatchBooks& books, const Devices& devices);

  std::size_t next_in_turn_ = 0;  // RoundRobin: whose turn is next, whatever becomes of devices
  std::vector<double> credits_;   // RoundRobin: parts of a turn that a lighter device has saved
};

}  // namespace muster
