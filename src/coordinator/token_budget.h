#pragma once

#include <cstdint>

namespace muster {

/// How many tokens a batch may have on one device: what was asked for. It halves after running out
/// of memory, then grows back, since what was in the way (another program, a burst of long texts)
/// may be gone.
///
/// Pure. Threads: owned by the coordinator's loop.
class TokenBudget {
 public:
  explicit TokenBudget(std::uint64_t most) : most_(most), now_(most) {}

  std::uint64_t now() const { return now_; }

  /// A batch of so many tokens did not fit: half of them from now on.
  void on_out_of_memory(std::uint64_t token_count);

  /// A batch of so many tokens was served. Twenty of more than half the budget, or of about the
  /// size that did not fit, let it grow by a quarter, up to what was asked for; true when it grew.
  bool on_served(std::uint64_t token_count);

 private:
  std::uint64_t most_;
  std::uint64_t now_;
  std::uint64_t failed_size_ = 0;       // tokens of the newest batch that did not fit
  std::uint32_t full_batch_count_ = 0;  // served at this budget
};

}  // namespace muster
