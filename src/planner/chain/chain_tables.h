#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/chain/chain.h"

namespace muster {

/// A ChainProblem made ready for the searches: exact times and the windows that fit.
///
/// Times are counted in ticks of a power of two of a second, so small that the whole chain with all
/// its cuts takes about 2^60 of them: sums and comparisons are then exact, the same in every order
/// and on every machine. A stage is [begin, end) of the L units.
class ChainTables {
 public:
  using Ticks = std::int64_t;

  /// MUSTER_CHECKs the shapes and that the times are finite.
  explicit ChainTables(const ChainProblem& problem);

  std::uint32_t unit_count() const { return unit_count_; }
  std::uint32_t class_count() const { return static_cast<std::uint32_t>(fits_whole_.size()); }

  /// Time of units [0, end) on a class; differences of it are times of stages. [L + 1]
  std::span<const Ticks> time_until(std::uint32_t device_class) const {
    return {time_until_.data() + row(device_class), unit_count_ + 1U};
  }

  /// The least begin of a stage that ends at `end` and fits; `end` when none does. Not for the
  /// whole chain on one device, which lacks the tail's extra. It never falls as `end` grows, but at
  /// the end of the chain. [L + 1]
  std::span<const std::uint32_t> fit_begin(std::uint32_t device_class) const {
    return {fit_begin_.data() + row(device_class), unit_count_ + 1U};
  }

  bool fits_whole(std::uint32_t device_class) const { return fits_whole_[device_class]; }

  /// What a stage that ends at `end` pays for its cut; 0 at the end of the chain. [L + 1]
  std::span<const Ticks> cut_at() const { return cut_at_; }
  bool is_cut_uniform() const { return is_cut_uniform_; }

  Ticks stage_ticks(std::uint32_t device_class, std::uint32_t begin, std::uint32_t end) const {
    const auto times = time_until(device_class);
    return times[end] - times[begin] + cut_at_[end];
  }

  /// More than any sum of stages and cuts.
  static constexpr Ticks kTicksMax = Ticks{1} << 62;

 private:
  std::size_t row(std::uint32_t device_class) const {
    return std::size_t{device_class} * (unit_count_ + 1U);
  }
  void fill_times(const ChainProblem& problem);
  void fill_windows(const ChainProblem& problem, std::uint32_t device_class);

  std::uint32_t unit_count_ = 0;
  bool is_cut_uniform_ = true;
  std::vector<Ticks> time_until_;         // [C, L + 1]
  std::vector<Ticks> cut_at_;             // [L + 1]
  std::vector<std::uint32_t> fit_begin_;  // [C, L + 1]
  std::vector<bool> fits_whole_;          // [C]
};

/// The placement in seconds, summed anew from the problem. `classes[i]`: class of stage i.
ChainPlacement make_placement(const ChainProblem& problem, std::vector<ChainStage> stages,
                              std::span<const std::uint32_t> classes);

/// Orders of the classes to try where the exact search is too large: every permutation of up to
/// four classes, else the classes by time and by capacity, both ways.
std::vector<std::vector<std::uint32_t>> class_orders(const ChainProblem& problem);

/// `counts[c]` times class c, class by class in the order given.
std::vector<std::uint32_t> devices_in(std::span<const std::uint32_t> classes,
                                      std::span<const std::uint32_t> counts);

}  // namespace muster
