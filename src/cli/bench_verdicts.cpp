// Verdicts: two results side by side, and what the instrument found out about itself. The verdict
// comes first and in words; the figures below it are for those who doubt it. A difference within
// the interval is none, and is said to be none.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "bench/result/figure_text.h"
#include "cli/bench_view.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"
#include "terminal/text_width.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

using Figures = std::vector<FigureDifference>;

std::string verdict_text(const FigureDifference& one) {
  return one.is_valid ? verdict_words(one) : std::string("none: invalid");
}

using Cells = std::vector<TableCell>;

// Of a figure's line: A, B, their ratio and its interval, the verdict.
std::vector<Column> columns_behind(std::vector<Column> first) {
  for (const auto* title : {"A", "B", "B / A", "from", "to"}) {
    first.push_back({.title = title, .align = Align::Right});
  }
  first.push_back({.title = "verdict"});
  return first;
}

Cells line_of(Cells first, const FigureDifference& one) {
  const auto& ratio = one.comparison;
  for (auto& cell : Cells{one.figure, compared_text(one.figure, one.a),
                          compared_text(one.figure, one.b), ratio_text(ratio.ratio),
                          ratio_text(ratio.low), ratio_text(ratio.high), verdict_text(one)}) {
    first.push_back(std::move(cell));
  }
  return first;
}

// A line for each figure of each load.
std::string wide_table(const Figures& figures) {
  Table table(columns_behind({{"load"}, {"figure"}}));
  for (const auto& one : figures) table.add_row(line_of({one.load}, one));
  return table.render(kUnboundedWidth);
}

std::string table_of_load(const Figures& figures, const std::string& load) {
  Table table(columns_behind({{"figure"}}));
  for (const auto& one : figures) {
    if (one.load == load) table.add_row(line_of({}, one));
  }
  return table.render(kUnboundedWidth);
}

// The verdict beside the figure, and what it was found from on a line below.
std::string narrow_table_of_load(const Figures& figures, const std::string& load,
                                 std::size_t width) {
  constexpr std::uint8_t kFirst = 2;
  Table table({{"figure"},
               {.title = "B / A", .align = Align::Right, .leaves = 1, .goes_below = true},
               {"verdict"},
               {.title = "", .leaves = kFirst, .goes_below = true}});
  for (const auto& one : figures) {
    if (one.load != load) continue;
    table.add_row({one.figure, ratio_text(one.comparison.ratio), verdict_text(one),
                   fmt::format("A {}, B {}, {} to {}", compared_text(one.figure, one.a),
                               compared_text(one.figure, one.b), ratio_text(one.comparison.low),
                               ratio_text(one.comparison.high))});
  }
  return table.render(width);
}

std::size_t widest_line(std::string_view text) {
  std::size_t widest = 0;
  for (const auto& line : split(text, '\n')) widest = std::max(widest, display_width(line));
  return widest;
}

// Each load by its whole name, and its figures below.
std::string texts_of_loads(const Figures& figures, std::size_t width, bool is_narrow) {
  std::vector<std::string> loads;
  for (const auto& one : figures) {
    if (std::ranges::find(loads, one.load) == loads.end()) loads.push_back(one.load);
  }
  std::string text;
  for (const auto& load : loads) {
    if (!text.empty()) text += '\n';
    text += wrapped(load, {.width = width, .indent = 2});
    text += is_narrow ? narrow_table_of_load(figures, load, width) : table_of_load(figures, load);
  }
  return text;
}

// Nothing is cut: what is worse, and under which load, is what was asked for.
std::string figures_text(const Figures& figures, std::size_t width) {
  auto text = wide_table(figures);
  if (widest_line(text) <= width) return text;
  text = texts_of_loads(figures, width, /*is_narrow=*/false);
  if (widest_line(text) <= width) return text;
  return texts_of_loads(figures, width, /*is_narrow=*/true);
}

}  // namespace

std::string diff_text(const ResultDifference& difference, std::size_t width) {
  const auto differs = [](const FigureDifference& one) {
    return one.is_valid && one.comparison.difference != Difference::None;
  };
  std::string text;
  if (difference.is_invalid()) {
    text = "no verdict: nothing that was compared is valid\n\n";
  } else if (difference.has_worse()) {
    text = "B is worse\n\n";
  } else if (std::ranges::any_of(difference.figures, differs)) {
    text = "B is better\n\n";
  } else {
    text = "no difference\n\n";
  }
  text += figures_text(difference.figures, width);
  for (const auto& note : difference.notes) {
    text += wrapped(note, {.width = width, .head = "note: ", .indent = 2});
  }
  return text;
}

std::string selftest_text(const std::vector<SelftestCheck>& checks) {
  const auto missed =
      std::ranges::count_if(checks, [](const SelftestCheck& one) { return !one.is_met; });
  auto text = missed == 0
                  ? fmt::format("all {} checks met: figures of this machine can be trusted\n\n",
                                checks.size())
                  : fmt::format("{} of {} checks MISSED\n\n", missed, checks.size());
  for (const auto& check : checks) {
    const auto line = fmt::format("{:<6} {}: {} ({})", check.is_met ? "met" : "MISSED", check.what,
                                  check.measured, check.required);
    text += line + "\n";
  }
  return text;
}

}  // namespace muster
