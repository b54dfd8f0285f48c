// A load in closed form: points of a piecewise linear curve with running integrals at each, so a
// value or an integral at any time costs O(1) and needs no state. Two samplers that ask at
// different times therefore agree, and a counter never runs backwards. Randomness is a hash of
// seed, device and purpose rather than a generator, so that the order of questions does not matter.

#include "hw/simulated/load_curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace muster {
namespace {

constexpr auto kPointCount = static_cast<std::size_t>(LoadCurve::kPeriod / LoadCurve::kStep);

// What the numbers of a device are drawn for.
enum Purpose : std::uint64_t { Wave = 1, Noise, Burst, Idle, Memory };

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// How long a line from `a` to `b` over `width` is above kCapped.
double above_cap(double a, double b, double width) {
  const auto high = std::max(a, b);
  const auto low = std::min(a, b);
  if (high <= LoadCurve::kCapped) return 0.0;
  if (low >= LoadCurve::kCapped) return width;
  return width * (high - LoadCurve::kCapped) / (high - low);
}

// y after `x` seconds of y' = (load - y) / kInertia, where load rises from `from` by `slope` a
// second: the straight line less the lag, and what is left of the start.
double follow(double y, double from, double slope, double x) {
  const auto lag = slope * LoadCurve::kInertia;
  return from + slope * x - lag + (y - from + lag) * std::exp(-x / LoadCurve::kInertia);
}

}  // namespace

std::uint64_t mixed_hash(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return mix(mix(mix(a) ^ b) ^ c);
}

double unit_hash(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return static_cast<double>(mixed_hash(a, b, c) >> 11) * 0x1p-53;
}

LoadCurve::LoadCurve(std::uint64_t seed, std::uint64_t device) : points_(kPointCount + 1) {
  draw(seed, device);
  integrate();
  settle();
}

void LoadCurve::draw(std::uint64_t seed, std::uint64_t device) {
  constexpr double kTurn = 2.0 * std::numbers::pi;
  constexpr std::size_t kFillPoints = 6;  // 12 s to fill the memory
  const auto own = mixed_hash(seed, device, Wave);
  const auto phase = kTurn * unit_hash(own, 0, Wave);
  const auto idle_begin = static_cast<std::size_t>(unit_hash(own, 0, Idle) * kPointCount);
  const auto idle_count = kPointCount / 12 + static_cast<std::size_t>(unit_hash(own, 1, Idle) * 10);
  const auto full = 0.55 + 0.35 * unit_hash(own, 0, Memory);
  for (std::size_t i = 0; i < kPointCount; ++i) {
    const auto angle = kTurn * static_cast<double>(i) / kPointCount;
    const auto since_idle = (i + kPointCount - idle_begin) % kPointCount;
    auto& point = points_[i];
    if (since_idle < idle_count) continue;
    auto load = 0.72 + 0.16 * std::sin(angle + phase) + 0.08 * std::sin(5.0 * angle - phase);
    load += 0.12 * (unit_hash(own, i, Noise) - 0.5);
    if (unit_hash(own, i, Burst) < 0.08) load = 1.0;
    point.load = std::clamp(load, 0.05, 1.0);
    const auto filled = std::min(since_idle - idle_count + 1, kFillPoints);
    point.memory = full * static_cast<double>(filled) / kFillPoints;
  }
  points_.back() = points_.front();
}

void LoadCurve::integrate() {
  for (std::size_t i = 0; i < kPointCount; ++i) {
    const auto& from = points_[i];
    auto& to = points_[i + 1];
    to.load_seconds = from.load_seconds + kStep * (from.load + to.load) / 2.0;
    to.capped_seconds = from.capped_seconds + above_cap(from.load, to.load, kStep);
  }
}

// After a whole period y is a y0 + b; settled, it is y0 again.
void LoadCurve::settle() {
  const auto run = [this](double y) {
    for (std::size_t i = 0; i < kPointCount; ++i) {
      points_[i].slow_load = y;
      const auto slope = (points_[i + 1].load - points_[i].load) / kStep;
      y = follow(y, points_[i].load, slope, kStep);
    }
    points_.back().slow_load = y;
    return y;
  };
  const auto b = run(0.0);
  const auto a = std::exp(-kPeriod / kInertia);
  run(b / (1.0 - a));
}

LoadCurve::Place LoadCurve::place(double t) {
  const auto turns = std::floor(t / kPeriod);
  const auto within = t - turns * kPeriod;
  const auto index = std::min(static_cast<std::size_t>(within / kStep), kPointCount - 1);
  return {turns, index, within - static_cast<double>(index) * kStep};
}

double LoadCurve::load(double t) const {
  const auto at = place(t);
  const auto& from = points_[at.index];
  return from.load + (next(at).load - from.load) * at.after / kStep;
}

double LoadCurve::load_seconds(double t) const {
  const auto at = place(t);
  const auto& from = points_[at.index];
  return at.turns * points_.back().load_seconds + from.load_seconds +
         at.after * (from.load + load(t)) / 2.0;
}

double LoadCurve::capped_seconds(double t) const {
  const auto at = place(t);
  const auto& from = points_[at.index];
  return at.turns * points_.back().capped_seconds + from.capped_seconds +
         above_cap(from.load, load(t), at.after);
}

double LoadCurve::slow_load(double t) const {
  const auto at = place(t);
  const auto& from = points_[at.index];
  return follow(from.slow_load, from.load, (next(at).load - from.load) / kStep, at.after);
}

double LoadCurve::memory_share(double t) const {
  const auto at = place(t);
  const auto& from = points_[at.index];
  return from.memory + (next(at).memory - from.memory) * at.after / kStep;
}

}  // namespace muster
