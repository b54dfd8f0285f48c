// The table that document 3 promises of a benchmark: latency from least to most, and texts a
// second, for each batch size and precision. Tokens and joules have a column where some point has
// them; a figure that a point has not is a dash.
#include "cli/sweep/sweep_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "sweep/point_record.h"
#include "terminal/table.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
  std::string_view title;
  std::string_view part;  // of the record
  std::string_view key;
  double factor = 1;
  std::uint8_t leaves = 0;  // where the table is too wide
};

constexpr double kMs = 1e3;
constexpr std::array kFigures{
    Figure{"prompts/s", "summary", "throughput_prompts_per_second"},
    Figure{"tokens/s", "summary", "throughput_output_tokens_per_second", 1, 2},
    Figure{"min ms", "summary", "min_latency_seconds", kMs, 4},
    Figure{"mean ms", "summary", "avg_latency_seconds", kMs},
    Figure{"p95 ms", "summary", "p95_latency_seconds", kMs},
    Figure{"p99 ms", "summary", "p99_latency_seconds", kMs, 3},
    Figure{"max ms", "summary", "max_latency_seconds", kMs, 5},
    Figure{"first token ms", "summary", "avg_time_to_first_token", kMs, 1},
    Figure{"J/prompt", "energy", "joules_per_prompt"},
    Figure{"failed", "summary", "failed_prompts"},
};

std::optional<double> value_of(const Json& record, const Figure& figure) {
  const auto value = record_value(record, figure.part, figure.key);
  return value.is_number() ? std::optional(value.get<double>() * figure.factor) : std::nullopt;
}

// Three significant digits; whole numbers as they are.
std::string number_text(const std::optional<double>& value) {
  if (!value) return "-";
  const bool is_whole = *value == std::trunc(*value) || *value >= 100;
  return is_whole ? fmt::format("{:.0f}", *value) : fmt::format("{:.3g}", *value);
}

std::string setting_text(const Json& record, const std::string& name) {
  const auto value = record_value(record, "config", name);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.is_null() ? "-" : value.dump();
  std::string text;
  for (const auto& one : value) {
    text += (text.empty() ? "" : ",") + (one.is_string() ? one.get<std::string>() : one.dump());
  }
  return text;
}

bool is_valid(const Json& record) { return record.value("valid", false); }

// Why a row's figures are not to be taken as they stand.
std::string_view remark_of(const Json& record) {
  if (!is_valid(record)) return "INVALID";
  return record_value(record, "summary", "steady") == false ? "not steady" : "";
}

std::string label_of(const Json& record, const std::vector<std::string>& swept) {
  std::string label;
  for (const auto& name : swept) {
    label += fmt::format("{}{}={}", label.empty() ? "" : " ", name, setting_text(record, name));
  }
  return label;
}

// A valid point is before every other, also where its rate is not known.
std::string verdict_text(const std::vector<Json>& records, const std::vector<std::string>& swept,
                         std::size_t width) {
  const auto best = std::ranges::max_element(records, {}, [](const Json& record) {
    return is_valid(record) ? value_of(record, kFigures[0]).value_or(-1) : -2;
  });
  if (!is_valid(*best)) return "no point is valid\n";
  const auto label = label_of(*best, swept);
  const auto text =
      fmt::format("{}{}{} prompts/s",
                  swept.empty() ? "" : "highest throughput: ", label.empty() ? "" : label + ", ",
                  number_text(value_of(*best, kFigures[0])));
  return wrapped(text, {.width = width, .indent = 2});
}

// Why points are INVALID, a line each; a file that was changed by hand holds anything.
std::string reasons_text(const std::vector<Json>& records, const std::vector<std::string>& swept,
                         std::size_t width) {
  constexpr std::size_t kReasonsMost = 5;
  std::string text;
  std::size_t count = 0;
  for (const auto& record : records) {
    const auto reasons = record.find("invalid_reasons");
    if (is_valid(record) || reasons == record.end() || !reasons->is_array()) continue;
    for (const auto& reason : *reasons) {
      if (!reason.is_string() || ++count > kReasonsMost) continue;
      const auto label = label_of(record, swept);
      text += wrapped(printable(fmt::format("{}{}INVALID: {}", label, label.empty() ? "" : " is ",
                                            reason.get<std::string>())),
                      {.width = width, .indent = 2});
    }
  }
  if (count <= kReasonsMost) return text;
  return text + fmt::format("and {} more: invalid_reasons in the table\n", count - kReasonsMost);
}

}  // namespace

std::string sweep_text(const std::vector<Json>& records, const std::vector<std::string>& swept,
                       std::size_t width) {
  if (records.empty()) return "no point was measured\n";
  std::vector<Column> columns;
  for (const auto& name : swept) columns.push_back({.title = name, .may_shrink = true});
  std::vector<Figure> shown;
  for (const auto& figure : kFigures) {
    const bool is_there = std::ranges::any_of(
        records, [&](const Json& record) { return value_of(record, figure).has_value(); });
    if (!is_there) continue;
    shown.push_back(figure);
    columns.push_back(
        {.title = std::string(figure.title), .align = Align::Right, .leaves = figure.leaves});
  }
  columns.push_back({.title = "", .may_shrink = true});
  Table table(std::move(columns));
  for (const auto& record : records) {
    std::vector<TableCell> cells;
    for (const auto& name : swept) cells.emplace_back(setting_text(record, name));
    for (const auto& figure : shown) cells.emplace_back(number_text(value_of(record, figure)));
    cells.emplace_back(std::string(remark_of(record)));
    table.add_row(std::move(cells));
  }
  const auto reasons = reasons_text(records, swept, width);
  return verdict_text(records, swept, width) + "\n" + table.render(width) +
         (reasons.empty() ? "" : "\n" + reasons);
}

std::string other_builds_text(const RecordTable& table, std::string_view name,
                              std::string_view build, bool is_remote) {
  std::set<std::string> builds;
  std::size_t count = 0;
  for (std::size_t row = 0; row < table.row_count(); ++row) {
    auto other = table.cell(row, "backend_info_build");
    if (other.empty() || other == build) continue;
    builds.insert(std::move(other));
    ++count;
  }
  if (count == 0) return {};
  return fmt::format("{} has {} point{} of another build of muster ({}): {}", name, count,
                     count == 1 ? "" : "s", fmt::join(builds, ", "),
                     is_remote ? "the server is what is measured, so they count"
                               : "kept beside those of this one");
}

}  // namespace muster
