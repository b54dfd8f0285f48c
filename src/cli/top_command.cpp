// A screen that draws itself anew, or one frame for a pipe. Without a terminal --once is required
// and never assumed: a screen's frames in a file would be of no use. A printed frame waits one
// interval, because rates need two readings.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/interval.h"
#include "cli/replay_source.h"
#include "cli/telemetry_options.h"
#include "cli/top_screen.h"
#include "cli/top_source.h"
#include "terminal/curses_screen.h"
#include "terminal/terminal_info.h"
#include "views/top_view.h"

namespace muster {
namespace {

// Where nobody says how wide it is: enough for the last minute of each device.
constexpr std::size_t kPrintedWidth = 120;

CommandSpec top_spec() {
  return {
      .name = "top",
      .summary = "watch the devices on a screen: load, memory, power, processes",
      .usage = "",
      .groups = {{"Output",
                  {},
                  {{"--once", "", "print one frame and end; needs no terminal"},
                   {"--interval", "TIME", "between frames: 100ms, 0.5s, 2m (default: 1s)"},
                   {"--ascii", "", "no characters beyond ASCII"},
                   {"--replay", "FILE", "what `muster monitor --out FILE` has recorded"}}},
                 watched_machine_flags()},
      .examples =
          "  muster top\n"
          "  muster top --machine sim:8xH100-80G\n"
          "  muster top --once | head -5\n"
          "  muster top --replay stats.jsonl\n",
  };
}

CharacterSet characters_of(const CommandContext& context, const TerminalInfo& terminal) {
  return context.arguments.has("--ascii") ? CharacterSet::Ascii : terminal.characters();
}

// As many rows as a frame can take, so that nothing is left out where nothing scrolls.
// A bound and not the exact number, which only drawing would tell.
std::size_t rows_of(const TelemetrySnapshot& snapshot) {
  constexpr std::size_t kPanels = 80;    // titles, cores, plots, processes without a GPU
  constexpr std::size_t kOfADevice = 2;  // its line, and why it is slow
  std::size_t rows = kPanels;
  for (const auto& status : snapshot.devices) {
    rows += kOfADevice + status.processes.size() + status.health.size();
  }
  return rows;
}

Status print_frame(const CommandContext& context, const TopData& data) {
  const auto terminal = context.terminal(STDOUT_FILENO);
  const auto width = terminal.width == kUnboundedWidth ? kPrintedWidth : terminal.width;
  Canvas canvas(width, rows_of(data.snapshot), characters_of(context, terminal));
  TopState state;
  state.has_keys = false;
  draw_top(data, state, canvas);
  return context.output.append(terminal.has_color ? canvas.ansi() : canvas.text());
}

// As a shell shows the end by a signal; 0 without one.
int exit_code_now() {
  constexpr int kSignalExit = 128;
  return interrupt_signal() == 0 ? 0 : kSignalExit + interrupt_signal();
}

// Rates need two readings, so a printed frame is one interval old; a signal ends the waiting.
void wait_for_rates(Duration interval) {
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(interval).count();
  if (interrupt_signal() == 0) poll(nullptr, 0, static_cast<int>(wait));
}

Status show(const CommandContext& context, TopSource& source) {
  const auto terminal = context.terminal(STDOUT_FILENO);
  const auto screen =
      MUSTER_TRY(CursesScreen::open({characters_of(context, terminal), terminal.has_color}));
  return show_top(*screen, source, context.clock);
}

Status check_terminal(const CommandContext& context) {
  if (context.arguments.has("--once")) return Done{};
  const auto terminal = context.terminal(STDOUT_FILENO);
  if (isatty(STDIN_FILENO) != 1 || !terminal.is_terminal) {
    return Error{ErrorKind::InvalidArgument,
                 "muster top needs a terminal: `muster top --once` prints a frame without one"};
  }
  if (terminal.can_redraw) return Done{};
  const char* term = std::getenv("TERM");
  return Error{ErrorKind::InvalidArgument,
               fmt::format("this terminal cannot move its cursor (TERM is {}): `muster top --once` "
                           "prints a frame on any",
                           term == nullptr || *term == '\0' ? "not set" : term)};
}

Result<int> run_replay(const CommandContext& context, const std::string& file) {
  for (const auto* flag : {"--machine", "--interval"}) {
    if (!context.arguments.has(flag)) continue;
    return Error{ErrorKind::InvalidArgument,
                 fmt::format("--replay shows what was recorded: {} has no meaning with it", flag)};
  }
  const auto source = MUSTER_TRY(ReplaySource::open(file));
  if (!context.arguments.has("--once")) {
    MUSTER_TRY(show(context, *source));
    return exit_code_now();
  }
  source->go_to_end();
  const auto frame = MUSTER_TRY(source->frame());
  if (frame) MUSTER_TRY(print_frame(context, *frame));
  return 0;
}

Result<int> run_live(const CommandContext& context, Duration interval) {
  const auto options = MUSTER_TRY(collector_options(context));
  const auto source = MUSTER_TRY(LiveSource::start(options, context.clock, interval));
  if (context.arguments.has("--once")) {
    MUSTER_TRY(source->wait());
    wait_for_rates(interval);
    if (exit_code_now() != 0) return exit_code_now();
    const auto frame = MUSTER_TRY(source->frame());
    if (frame) MUSTER_TRY(print_frame(context, *frame));
    return 0;
  }
  MUSTER_TRY(show(context, *source));
  // Somebody quit while a driver was still being asked: the terminal is given back, and the sampler
  // ends with this process. Nothing is left to wait for.
  if (!source->is_settled()) _exit(exit_code_now());
  return exit_code_now();
}

Result<int> run_top(const CommandContext& context) {
  MUSTER_TRY(check_terminal(context));
  const auto interval = MUSTER_TRY(
      parse_interval("--interval", context.arguments.value("--interval").value_or("1s")));
  catch_interrupts();
  if (const auto file = context.arguments.value("--replay")) return run_replay(context, *file);
  return run_live(context, interval);
}

}  // namespace

Command top_command() { return {top_spec(), run_top}; }

}  // namespace muster
