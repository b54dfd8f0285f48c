#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster {

/// A chain of units to be cut into consecutive stages, one per device.
///
/// Shapes: L units, C classes of device, N devices. A stage of class c with units [a, b) fits when
/// sum(bytes[a, b)) + max(peak[a, b)) <= capacity[c], plus the extras below. Times are finite and
/// not negative; the sums of bytes stay below 2^63.
struct ChainProblem {
  std::vector<std::uint64_t> bytes = {};  // [L] kept on the device that has the unit
  std::vector<std::uint64_t> peak = {};   // [L] or empty: alive only while the unit runs
  std::vector<std::vector<double>> seconds =
      {};  // [C][L] time of a unit on a class; the last class may be the host
  std::vector<std::uint64_t> capacity = {};  // [C] bytes for units, fixed parts already taken off
  double cut_seconds = 0.0;                  // handing activations to the next stage
  std::uint64_t tail_extra_bytes =
      0;  // on the stage with the last unit, unless it has the first too (a tied head)
  std::vector<double> cut_seconds_after = {};  // [L] or empty: where cuts differ, a cut after unit
                                               // u; it then counts instead of `cut_seconds`
};

/// Units [begin, end) on a device; empty stages are left out.
struct ChainStage {
  std::uint32_t device = 0;  // position in the order given, or the class where the order was free
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct ChainPlacement {
  std::vector<ChainStage> stages;  // in the order of the chain
  double slowest_seconds = 0.0;    // the slowest stage with its outgoing cut
  double total_seconds = 0.0;      // all stages and cuts
  double bound_seconds = 0.0;      // no placement is better than this, in what was minimised
};

/// The four questions below are answered exactly (to 1e-12 of the chain's whole time) unless said
/// otherwise; `bound_seconds` is then what was minimised. Units that are no class's are not there:
/// a chain of no units needs no stage. Threads: pure.

/// P1: least slowest stage, devices in a fixed order, empty stages allowed.
/// `order`: [N] class of each device. nullopt: nothing fits.
/// Cost: O((C L + N) log(1 / eps)); where cuts differ O((C + stages) L log(1 / eps) + N).
/// Source: Pinar, Tabak, Aykanat, JPDC 68 (2008).
std::optional<ChainPlacement> min_slowest_in_order(const ChainProblem& problem,
                                                   std::span<const std::uint32_t> order);

/// P2: least slowest stage, `counts[c]` devices of class c, order free; among the placements at
/// that bound one with the fewest devices.
/// Beyond 16 million combinations of counts (or where cuts differ, 64 million bits) the best of the
/// orders by class is taken, and `bound_seconds` may be less than the answer.
/// Cost: O(C prod(counts + 1) log(1 / eps)).
std::optional<ChainPlacement> min_slowest_any_order(const ChainProblem& problem,
                                                    std::span<const std::uint32_t> counts);

/// P3: least sum of stages and cuts, devices in a fixed order. Cost: O(L N).
std::optional<ChainPlacement> min_total_in_order(const ChainProblem& problem,
                                                 std::span<const std::uint32_t> order);

/// P4: least sum of stages and cuts, `counts[c]` devices of class c, order free.
/// Only classes that would run out are counted. Beyond 16 million entries of the table the best of
/// the orders by class is taken, and `bound_seconds` may be less than the answer.
/// Cost: O(C L prod(counts + 1)).
std::optional<ChainPlacement> min_total_any_order(const ChainProblem& problem,
                                                  std::span<const std::uint32_t> counts);

/// P5: the slowest stage of P1 in seconds for several numbers of equal devices, of class 0; nullopt
/// where nothing fits. Cheaper than to ask for each. Cost: O(L log(1 / eps)) for each number.
std::vector<std::optional<double>> min_slowest_of_equal(
    const ChainProblem& problem, std::span<const std::uint32_t> device_counts);

}  // namespace muster
