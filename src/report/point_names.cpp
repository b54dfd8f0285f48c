// A point of a sweep is known by its settings. What differs is read off all points, as the plots
// do.
#include "report/point_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "report/sweep_lines.h"

namespace muster {
namespace {

// A number by its size, in front of all words; words by their letters.
using SettingOrder = std::tuple<bool, double, std::string>;

SettingOrder order_of(std::string_view value) {
  const auto number = number_of_setting(value);
  return {!number, number.value_or(0), number ? std::string() : std::string(value)};
}

struct NamedPoint {
  std::vector<SettingOrder> order;
  ReportResult result;
};

std::string name_of(const ReportResult& result, std::span<const std::string> varying) {
  std::string name;
  for (const auto& key : varying) {
    name += fmt::format("{}{}={}", name.empty() ? "" : " ", key, setting_of(result, key));
  }
  return name;
}

bool is_found_point(const ReportResult& result) { return result.record && !result.is_compared; }

}  // namespace

void name_points(std::vector<ReportResult>& results) {
  const auto varying = varying_settings(results);
  if (varying.empty()) return;
  std::vector<std::size_t> places;
  std::vector<NamedPoint> points;
  std::map<std::string, int> counts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!is_found_point(results[i])) continue;
    places.push_back(i);
    ++counts[name_of(results[i], varying)];
    NamedPoint point;
    for (const auto& key : varying) point.order.push_back(order_of(setting_of(results[i], key)));
    point.result = std::move(results[i]);
    points.push_back(std::move(point));
  }
  std::ranges::stable_sort(points, {}, &NamedPoint::order);
  for (std::size_t i = 0; i < points.size(); ++i) {
    auto& result = points[i].result;
    auto name = name_of(result, varying);
    if (counts[name] > 1) name += fmt::format(" ({})", result.name);
    result.name = std::move(name);
    results[places[i]] = std::move(result);
  }
}

}  // namespace muster
