// Times become integers before any search, so that sums do not depend on their order and bisection
// has a last step. The scale is a power of two near 2^60 for the whole chain: conversion loses at
// most half a tick a unit, and sums of a few chains cannot overflow. Which begins fit an end is
// precomputed by two pointers with a monotonic queue of peaks, O(L) a class. The whole chain on one
// device is a case of its own, as it needs no copy of a tied tail.

#include "planner/chain/chain_tables.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>

#include "base/check.h"

namespace muster {
namespace {

// The whole chain takes less than 2^60 ticks, so that the sum of a few such fits an int64.
constexpr int kTickBits = 60;

// The largest power of two of a double is 2^1023; chains of less than 2^-940 seconds are not timed.
constexpr int kExponentMax = 1000;

// Up to this many classes every order is tried: 24 of them.
constexpr std::size_t kPermutedClassesMax = 4;

double cut_seconds(const ChainProblem& problem, std::size_t end) {
  return problem.cut_seconds_after.empty() ? problem.cut_seconds
                                           : problem.cut_seconds_after[end - 1];
}

void check_shapes(const ChainProblem& problem) {
  const auto unit_count = problem.bytes.size();
  MUSTER_CHECK(problem.seconds.size() == problem.capacity.size());
  MUSTER_CHECK(problem.peak.empty() || problem.peak.size() == unit_count);
  MUSTER_CHECK(problem.cut_seconds_after.empty() || problem.cut_seconds_after.size() == unit_count);
  for (const auto& row : problem.seconds) MUSTER_CHECK(row.size() == unit_count);
}

}  // namespace

ChainTables::ChainTables(const ChainProblem& problem)
    : unit_count_(static_cast<std::uint32_t>(problem.bytes.size())),
      is_cut_uniform_(problem.cut_seconds_after.empty()),
      fits_whole_(problem.capacity.size()) {
  check_shapes(problem);
  fill_times(problem);
  fit_begin_.resize(fits_whole_.size() * (unit_count_ + 1U));
  for (std::uint32_t c = 0; c < class_count(); ++c) fill_windows(problem, c);
}

void ChainTables::fill_times(const ChainProblem& problem) {
  double cuts = 0.0;
  for (std::size_t end = 1; end < problem.bytes.size(); ++end) cuts += cut_seconds(problem, end);
  double longest = 0.0;
  for (const auto& row : problem.seconds) {
    longest = std::max(longest, std::accumulate(row.begin(), row.end(), 0.0));
  }
  const double whole = longest + cuts;
  MUSTER_CHECK(std::isfinite(whole) && whole >= 0.0);
  const int exponent = whole > 0.0 ? std::min(kTickBits - 1 - std::ilogb(whole), kExponentMax) : 0;
  const double ticks_per_second = std::ldexp(1.0, exponent);
  // A power of two changes no digit, so rounding to whole ticks is all that is lost.
  const auto ticks = [ticks_per_second](double seconds) {
    MUSTER_CHECK(seconds >= 0.0);
    return static_cast<Ticks>(std::llround(seconds * ticks_per_second));
  };
  cut_at_.assign(unit_count_ + 1U, 0);
  for (std::uint32_t end = 1; end < unit_count_; ++end) {
    cut_at_[end] = ticks(cut_seconds(problem, end));
  }
  time_until_.reserve(problem.seconds.size() * (unit_count_ + 1U));
  for (const auto& row : problem.seconds) {
    Ticks sum = 0;
    time_until_.push_back(sum);
    for (const double seconds : row) time_until_.push_back(sum += ticks(seconds));
  }
}

// Two pointers: if [a, b + 1) fits, so does [a, b), hence the least begin never falls. The largest
// peak of the window stands in front of a deque of falling peaks.
void ChainTables::fill_windows(const ChainProblem& problem, std::uint32_t device_class) {
  const auto capacity = problem.capacity[device_class];
  auto* begins = fit_begin_.data() + row(device_class);
  std::deque<std::uint32_t> peaks;
  std::uint64_t sum = 0;
  std::uint32_t begin = 0;
  const auto excess = [&](std::uint64_t extra) {
    const auto peak = peaks.empty() || problem.peak.empty() ? 0 : problem.peak[peaks.front()];
    return sum + peak + extra > capacity;
  };
  const auto drop_first = [&] {
    if (!peaks.empty() && peaks.front() == begin) peaks.pop_front();
    sum -= problem.bytes[begin++];
  };
  begins[0] = 0;
  for (std::uint32_t end = 1; end <= unit_count_; ++end) {
    sum += problem.bytes[end - 1];
    if (!problem.peak.empty()) {
      while (!peaks.empty() && problem.peak[peaks.back()] <= problem.peak[end - 1]) {
        peaks.pop_back();
      }
      peaks.push_back(end - 1);
    }
    while (begin < end && excess(0)) drop_first();
    begins[end] = begin;
  }
  fits_whole_[device_class] = begin == 0;
  if (unit_count_ == 0) return;
  // The last stage again: not the whole chain, and with the tail's extra.
  if (begin == 0) drop_first();
  while (begin < unit_count_ && excess(problem.tail_extra_bytes)) drop_first();
  begins[unit_count_] = begin;
}

ChainPlacement make_placement(const ChainProblem& problem, std::vector<ChainStage> stages,
                              std::span<const std::uint32_t> classes) {
  ChainPlacement placement;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const auto [device, begin, end] = stages[i];
    const auto& row = problem.seconds[classes[i]];
    double seconds = std::accumulate(row.begin() + begin, row.begin() + end, 0.0);
    if (end < problem.bytes.size()) seconds += cut_seconds(problem, end);
    placement.slowest_seconds = std::max(placement.slowest_seconds, seconds);
    placement.total_seconds += seconds;
  }
  placement.stages = std::move(stages);
  return placement;
}

std::vector<std::vector<std::uint32_t>> class_orders(const ChainProblem& problem) {
  std::vector<std::uint32_t> order(problem.capacity.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<std::vector<std::uint32_t>> orders;
  if (order.size() <= kPermutedClassesMax) {
    do {
      orders.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return orders;
  }
  const auto add_both = [&](const auto& key) {
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
    orders.push_back(order);
    std::reverse(order.begin(), order.end());
    orders.push_back(order);
  };
  add_both([&](std::uint32_t c) {
    return std::accumulate(problem.seconds[c].begin(), problem.seconds[c].end(), 0.0);
  });
  add_both([&](std::uint32_t c) { return problem.capacity[c]; });
  return orders;
}

std::vector<std::uint32_t> devices_in(std::span<const std::uint32_t> classes,
                                      std::span<const std::uint32_t> counts) {
  std::vector<std::uint32_t> devices;
  for (const auto c : classes) devices.insert(devices.end(), counts[c], c);
  return devices;
}

}  // namespace muster
