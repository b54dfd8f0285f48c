// The keys and columns of `muster top`, where reasons for a low clock come from the table that the
// column itself uses.
// On a narrow screen the caller wraps the lines below their explanations, so they are kept in
// two columns.
#include "views/top_help.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "spec/reading.h"

namespace muster {
namespace {

std::string letters_line() {
  std::string line = "WHY      ";
  for (const auto& info : clock_events()) {
    // Those of concern; the same letter is explained once.
    if (info.letter < 'A' || info.letter > 'Z') continue;
    const auto entry = fmt::format("{} ", info.letter);
    if (line.find(" " + entry) != std::string::npos) continue;
    const auto words = info.letter == 'T' ? std::string_view("temperature") : info.words;
    line += entry + std::string(words) + "  ";
  }
  return line + "i idle";
}

std::vector<std::string> make_lines() {
  return {
      "",
      "q quit   ? help   space pause; in a replay: space plays, left and right step",
      "up, down, PageUp, PageDown, Home, End: choose a device, whose UUID, plots and",
      "processes are shown; Esc: choose none",
      "s sort by the next column    r the other way round    click a title: sort by it",
      "/ keep the devices and processes that have a text in their name",
      "p processes alone    e power and energy    + - speed of a replay",
      "k end the chosen process of your own (page p): y sends SIGTERM, 9 SIGKILL",
      "",
      "BUSY     % of time with a kernel running, as the driver says; of a CPU, not idle",
      "SM/TC%   % of cycles with work on multiprocessors / on tensor cores",
      "DRAM%    % of the memory bandwidth in use",
      "W/LIMIT  watts now / the limit in force",
      "C/LEFT   degrees Celsius / degrees until the clock is lowered",
      "CLK%     clock of the multiprocessors, of its maximum",
      letters_line(),
      "NVL/s    bytes a second over NVLink or Infinity Fabric, both directions",
      "OK?      ok; !2: two warnings; X1: one thing makes it unfit",
      "CPU%     CPU time of a process by time: 100 is a whole core",
  };
}

}  // namespace

std::span<const std::string> help_lines() {
  static const auto lines = make_lines();
  return lines;
}

}  // namespace muster
