#pragma once

#include <cstdint>
#include <vector>

namespace muster {

/// A made-up load that moves: slow waves, bursts at full load, now and then idle. It is piecewise
/// linear and comes round every `kPeriod` seconds, so that every integral over it is exact, at any
/// time and in any order. It imitates no workload; it is there so that views have something to
/// show.
///
/// Threads: immutable.
class LoadCurve {
 public:
  static constexpr double kPeriod = 240.0;  // seconds
  static constexpr double kStep = 2.0;      // between the points of the curve

  LoadCurve(std::uint64_t seed, std::uint64_t device);

  /// From 0 (idle) to 1 at `t` seconds of the clock.
  double load(double t) const;

  /// The integral of `load` from 0 to t, in seconds.
  double load_seconds(double t) const;

  /// For how long, from 0 to t, the load was above kCapped, in seconds.
  double capped_seconds(double t) const;
  static constexpr double kCapped = 0.97;

  /// `load` as something heavy follows it: y' = (load - y) / kInertia, settled.
  double slow_load(double t) const;
  static constexpr double kInertia = 12.0;  // seconds

  /// Share of the memory that is filled: it fills when work begins and is freed at idle.
  double memory_share(double t) const;

 private:
  struct Point {
    double load = 0;
    double load_seconds = 0;    // until here, within a period
    double capped_seconds = 0;  // the same
    double slow_load = 0;
    double memory = 0;
  };
  struct Place {
    double turns = 0;       // whole periods before
    std::size_t index = 0;  // the point before
    double after = 0;       // seconds since that point
  };

  static Place place(double t);
  const Point& next(const Place& place) const { return points_[place.index + 1]; }
  void draw(std::uint64_t seed, std::uint64_t device);
  void integrate();
  void settle();

  std::vector<Point> points_;  // kPeriod / kStep + 1; the last one equals the first
};

/// A number from 0 to 1 that looks random and is the same for the same words.
///
/// Source: Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
double unit_hash(std::uint64_t a, std::uint64_t b, std::uint64_t c);
std::uint64_t mixed_hash(std::uint64_t a, std::uint64_t b, std::uint64_t c);

}  // namespace muster
