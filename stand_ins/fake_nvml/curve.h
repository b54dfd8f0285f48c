#pragma once

#include <cstddef>
#include <vector>

namespace muster::fake_nvml {

/// A value over time made of straight pieces, with jumps between them where that is wanted; it may
/// repeat. Before time 0 it has the value of time 0, after the last piece the last value.
///
/// Units: time in seconds. Threads: immutable.
class Curve {
 public:
  struct Point {
    double at = 0;
    double value = 0;
  };
  struct Square {
    double period = 1;
    double low = 0;
    double high = 1;
    double duty = 0.5;  // the share of the period that is high, which comes first
    double phase = 0;   // how far the period has come at time 0
  };

  static Curve constant(double value);
  /// Straight lines between points; times rise from 0. period: 0, or at least the last point's
  /// time.
  static Curve lines(const std::vector<Point>& points, double period);
  /// Each value holds until the next point.
  static Curve steps(const std::vector<Point>& points, double period);
  static Curve square(const Square& square);

  double value(double at) const;
  /// The integral from 0 to `at`, in closed form; negative before 0.
  double integral(double at) const;
  double mean(double from, double until) const;

 private:
  friend class Lagged;
  struct Piece {
    double start = 0;
    double first = 0;     // value at the start
    double slope = 0;     // per second
    double integral = 0;  // from the curve's start to the piece's
    double at(double time) const { return first + slope * (time - start); }
    double integral_at(double time) const {
      const double length = time - start;
      return integral + first * length + 0.5 * slope * length * length;
    }
  };
  void append(double start, double first, double slope);
  std::size_t piece_of(double time) const;
  /// Where in the pieces a time lies, and how many whole periods passed before it.
  double folded(double at, double& periods) const;
  /// The commonest load, whose integral is a product: a call of a stand-in should take no time.
  bool is_constant() const { return period_ == 0 && pieces_.size() == 1 && pieces_[0].slope == 0; }
  double integral_from_start(double at) const;

  std::vector<Piece> pieces_;
  double period_ = 0;  // 0: it does not repeat
  double shift_ = 0;
  double period_integral_ = 0;
};

/// What follows a curve with a first-order lag: y' = (curve - y) / time_constant, at rest at time
/// 0.
///
/// Exact: over a straight piece a + b s the solution is a + b (s - tau) + (y0 - a + b tau)
/// e^(-s/tau); for a curve that repeats, the periodic solution plus a transient that decays.
class Lagged {
 public:
  Lagged(Curve curve, double time_constant);
  double value(double at) const;

 private:
  double over_piece(std::size_t piece, double start_value, double until) const;
  double within(double time) const;

  Curve curve_;
  double tau_;
  std::vector<double> starts_;  // the solution where each piece begins; periodic if the curve is
  double rest_ = 0;             // at time 0
};

}  // namespace muster::fake_nvml
