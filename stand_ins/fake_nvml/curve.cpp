#include "fake_nvml/curve.h"

#include <algorithm>
#include <cmath>

namespace muster::fake_nvml {

void Curve::append(double start, double first, double slope) {
  const double integral = pieces_.empty() ? 0.0 : pieces_.back().integral_at(start);
  pieces_.push_back({start, first, slope, integral});
}

Curve Curve::constant(double value) { return steps({{0, value}}, 0); }

Curve Curve::lines(const std::vector<Point>& points, double period) {
  Curve curve;
  curve.period_ = period;
  if (points.front().at > 0) curve.append(0, points.front().value, 0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool is_last = i + 1 == points.size();
    const double slope =
        is_last ? 0.0 : (points[i + 1].value - points[i].value) / (points[i + 1].at - points[i].at);
    curve.append(points[i].at, points[i].value, slope);
  }
  if (period > 0) curve.period_integral_ = curve.pieces_.back().integral_at(period);
  return curve;
}

Curve Curve::steps(const std::vector<Point>& points, double period) {
  Curve curve;
  curve.period_ = period;
  if (points.front().at > 0) curve.append(0, points.front().value, 0);
  for (const auto& point : points) curve.append(point.at, point.value, 0);
  if (period > 0) curve.period_integral_ = curve.pieces_.back().integral_at(period);
  return curve;
}

Curve Curve::square(const Square& square) {
  Curve curve = steps({{0, square.high}, {square.duty * square.period, square.low}}, square.period);
  curve.shift_ = std::fmod(square.phase, square.period);
  return curve;
}

std::size_t Curve::piece_of(double time) const {
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), time,
                       [](double value, const Piece& piece) { return value < piece.start; });
  return after == pieces_.begin() ? 0 : static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

double Curve::folded(double at, double& periods) const {
  double time = at + shift_;
  periods = 0;
  if (period_ > 0) {
    periods = std::floor(time / period_);
    time -= periods * period_;
  }
  return time;
}

double Curve::value(double at) const {
  double periods = 0;
  const double time = folded(std::max(at, 0.0), periods);
  return pieces_[piece_of(time)].at(time);
}

double Curve::integral_from_start(double at) const {
  double periods = 0;
  const double time = folded(at, periods);
  return periods * period_integral_ + pieces_[piece_of(time)].integral_at(time);
}

double Curve::integral(double at) const {
  if (is_constant()) return pieces_.front().first * at;
  if (at < 0) return value(0) * at;
  return integral_from_start(at) - integral_from_start(0);
}

double Curve::mean(double from, double until) const {
  return (integral(until) - integral(from)) / (until - from);
}

Lagged::Lagged(Curve curve, double time_constant)
    : curve_(std::move(curve)), tau_(time_constant), rest_(curve_.value(0)) {
  // From the value at rest, or (a curve that repeats) from 0 to learn what one period adds.
  const auto& pieces = curve_.pieces_;
  const auto run = [&](double first) {
    starts_.assign(1, first);
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      starts_.push_back(over_piece(i - 1, starts_.back(), pieces[i].start));
    }
  };
  if (curve_.period_ == 0) {
    run(rest_);
  } else {
    run(0);
    const double end = over_piece(pieces.size() - 1, starts_.back(), curve_.period_);
    run(end / -std::expm1(-curve_.period_ / tau_));
  }
}

double Lagged::over_piece(std::size_t piece, double start_value, double until) const {
  const auto& straight = curve_.pieces_[piece];
  const double s = until - straight.start;
  const double settled = straight.first + straight.slope * (s - tau_);
  return settled + (start_value - straight.first + straight.slope * tau_) * std::exp(-s / tau_);
}

double Lagged::within(double time) const {
  const auto piece = curve_.piece_of(time);
  return over_piece(piece, starts_[piece], time);
}

double Lagged::value(double at) const {
  if (at <= 0) return rest_;
  double periods = 0;
  const double followed = within(curve_.folded(at, periods));
  if (curve_.period_ == 0) return followed;
  const double transient = rest_ - within(curve_.folded(0, periods));
  return followed + transient * std::exp(-at / tau_);
}

}  // namespace muster::fake_nvml
