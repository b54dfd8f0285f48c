#include <fmt/format.h>

#include <array>

#include "fake_nvml/scenario_parts.h"

namespace muster::fake_nvml {
namespace {

Result<std::vector<Curve::Point>> read_points(const Field& list, double min, double max) {
  const auto items = MUSTER_TRY(list.items());
  if (items.empty()) return list.must_be("a list of at least one [seconds, value]");
  std::vector<Curve::Point> points;
  for (const auto& item : items) {
    if (!item.json().is_array() || item.json().size() != 2) return item.must_be("[seconds, value]");
    const auto pair = MUSTER_TRY(item.items());
    const double at = MUSTER_TRY(pair[0].number(0));
    const double value = MUSTER_TRY(pair[1].number(min, max));
    const Curve::Point point{at, value};
    if (!points.empty() && point.at <= points.back().at) {
      return item.must_be("later than the entry before it");
    }
    points.push_back(point);
  }
  return points;
}

Result<Curve> read_square(const Field& field, double min, double max) {
  static constexpr std::array<std::string_view, 5> kKeys{"period", "low", "high", "duty", "phase"};
  MUSTER_TRY(field.check_keys(kKeys));
  Curve::Square square;
  MUSTER_TRY(field.read("period", square.period, 1e-4));
  MUSTER_TRY(field.read("low", square.low, min, max));
  MUSTER_TRY(field.read("high", square.high, min, max));
  MUSTER_TRY(field.read("duty", square.duty, 1e-6, 1 - 1e-6));
  MUSTER_TRY(field.read("phase", square.phase));
  return Curve::square(square);
}

}  // namespace

Result<Curve> read_curve(const Field& field, double min, double max) {
  if (field.json().is_number()) {
    const double value = MUSTER_TRY(field.number(min, max));
    return Curve::constant(value);
  }
  if (!field.json().is_object()) {
    return field.must_be("a number, or an object with points, steps or square");
  }
  if (const auto square = field.child("square")) {
    static constexpr std::array<std::string_view, 1> kKeys{"square"};
    MUSTER_TRY(field.check_keys(kKeys));
    return read_square(*square, min, max);
  }
  static constexpr std::array<std::string_view, 3> kKeys{"points", "steps", "period"};
  MUSTER_TRY(field.check_keys(kKeys));
  const auto lines = field.child("points");
  const auto steps = field.child("steps");
  if (lines.has_value() == steps.has_value()) {
    return field.must_be("an object with points, steps or square");
  }
  const auto points = MUSTER_TRY(read_points(lines ? *lines : *steps, min, max));
  double period = 0;
  MUSTER_TRY(field.read("period", period, 1e-4));
  if (period > 0 && period < points.back().at) {
    return field.child("period")->must_be("at least the time of the last entry");
  }
  return lines ? Curve::lines(points, period) : Curve::steps(points, period);
}

Result<Span> read_span(const Field& field) {
  Span span;
  MUSTER_TRY(field.read("from", span.from));
  if (const auto until = field.child("until")) {
    span.until = MUSTER_TRY(until->number(0));
    if (*span.until <= span.from) return until->must_be("later than from");
  }
  return span;
}

Result<int> read_code(const Field& field) {
  struct Name {
    std::string_view name;
    int code;
  };
  // Source: nvml.h 13.3, nvmlReturn_t.
  static constexpr std::array kNames{Name{"UNINITIALIZED", 1},
                                     Name{"INVALID_ARGUMENT", 2},
                                     Name{"NOT_SUPPORTED", 3},
                                     Name{"NO_PERMISSION", 4},
                                     Name{"NOT_FOUND", 6},
                                     Name{"INSUFFICIENT_SIZE", 7},
                                     Name{"DRIVER_NOT_LOADED", 9},
                                     Name{"TIMEOUT", 10},
                                     Name{"IRQ_ISSUE", 11},
                                     Name{"FUNCTION_NOT_FOUND", 13},
                                     Name{"CORRUPTED_INFOROM", 14},
                                     Name{"GPU_IS_LOST", 15},
                                     Name{"RESET_REQUIRED", 16},
                                     Name{"LIB_RM_VERSION_MISMATCH", 18},
                                     Name{"IN_USE", 19},
                                     Name{"MEMORY", 20},
                                     Name{"NO_DATA", 21},
                                     Name{"ARGUMENT_VERSION_MISMATCH", 25},
                                     Name{"UNKNOWN", 999}};
  if (field.json().is_number_unsigned()) {
    const auto number = MUSTER_TRY(field.integer(999));
    return static_cast<int>(number);
  }
  if (field.json().is_string()) {
    const auto text = field.json().get<std::string>();
    for (const auto& row : kNames) {
      if (row.name == text) return row.code;
    }
  }
  return field.must_be("an error of NVML: its number, or a name such as NOT_SUPPORTED");
}

}  // namespace muster::fake_nvml
