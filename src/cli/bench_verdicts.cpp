// Verdicts: two results side by side, and what the instrument found out about itself. The verdict
// comes first and in words; the figures below it are for those who doubt it. A difference within
// the interval is none, and is said to be none.
#include <fmt/format.h>

#include <algorithm>

#include "bench/result/figure_text.h"
#include "cli/bench_view.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"

namespace muster {

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
  Table table({{"load", Align::Left, true},
               {"figure"},
               {"A", Align::Right},
               {"B", Align::Right},
               {"B / A", Align::Right},
               {"from", Align::Right},
               {"to", Align::Right},
               {"verdict"}});
  for (const auto& one : difference.figures) {
    table.add_row({one.load, one.figure, compared_text(one.figure, one.a),
                   compared_text(one.figure, one.b), ratio_text(one.comparison.ratio),
                   ratio_text(one.comparison.low), ratio_text(one.comparison.high),
                   one.is_valid ? verdict_words(one) : std::string("none: invalid")});
  }
  text += table.render(width);
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
