// The inventory once, or again and again with --watch. What is shown comes from one snapshot of the
// collector, which `monitor` and `top` use too, so the three agree. A simulated machine has no host
// to describe. `--watch` draws the same page on a canvas, without escape sequences, which a canvas
// does not take.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "base/text.h"
#include "cli/command.h"
#include "cli/devices_json.h"
#include "cli/interrupt.h"
#include "cli/interval.h"
#include "cli/telemetry_options.h"
#include "hw/inventory.h"
#include "terminal/curses_screen.h"
#include "terminal/terminal_info.h"
#include "views/devices_view.h"
#include "views/topology_view.h"

namespace muster {
namespace {

CommandSpec devices_spec() {
  return {
      .name = "devices",
      .summary = "show what this machine has to compute with",
      .usage = "",
      .groups = {{"Output",
                  {},
                  {{"--json", "", "the devices as a JSON object"},
                   {"--topology", "", "how the GPUs are linked, instead"},
                   {"--watch", "", "draw it again and again, until q"},
                   {"--interval", "TIME",
                    "how often --watch does: 100ms, 0.5s, 2m (default: 1s)"}}},
                 watched_machine_flags()},
      .examples =
          "  muster devices\n"
          "  muster devices --topology\n"
          "  muster devices --machine sim:8xH100-80G\n"
          "  muster devices --json | jq '.gpus[].uuid'\n",
  };
}

// What the machine itself is; nullopt for one that is only thought of.
Result<std::optional<Inventory>> find_host(const CollectorOptions& options) {
  if (options.simulated) return std::optional<Inventory>();
  MachineSources sources;
  sources.root = options.root;
  return std::optional<Inventory>(MUSTER_TRY(find_inventory(sources)));
}

std::string page_text(const CommandContext& context, const std::optional<Inventory>& host,
                      const TelemetrySnapshot& snapshot, const TerminalInfo& terminal) {
  if (context.arguments.has("--topology")) return describe_topology(snapshot, terminal);
  auto text = host ? describe_host(*host, terminal) + "\n" : "";
  return text + describe_devices(snapshot, terminal);
}

Result<int> watch(const CommandContext& context, const Collector& collector,
                  const std::optional<Inventory>& host, Duration interval) {
  const auto terminal = context.terminal(STDOUT_FILENO);
  const auto screen = MUSTER_TRY(CursesScreen::open({terminal.characters(), terminal.has_color}));
  while (interrupt_signal() == 0) {
    auto canvas = screen->canvas();
    // The canvas takes text without escape sequences.
    const auto text = page_text(context, host, collector.snapshot(), {.width = canvas.width()});
    std::size_t row = 0;
    for (const auto& line : split(text, '\n')) canvas.put(row++, 0, line);
    screen->draw(canvas);
    const auto input = screen->next_input(interval);
    if (!input) continue;
    const bool is_end = input->kind == InputKind::Closed || input->kind == InputKind::Escape ||
                        (input->kind == InputKind::Character && input->character == 'q');
    if (is_end) return 0;
  }
  constexpr int kSignalExit = 128;  // as a shell shows the end by a signal
  return kSignalExit + interrupt_signal();
}

Status check_watch(const CommandContext& context) {
  if (!context.arguments.has("--watch")) {
    if (!context.arguments.has("--interval")) return Done{};
    return Error{ErrorKind::InvalidArgument,
                 "--interval says how often --watch draws: add --watch"};
  }
  if (context.arguments.has("--json")) {
    return Error{ErrorKind::InvalidArgument,
                 "--watch draws on a terminal and --json does not: `muster monitor` writes a JSON "
                 "line each interval"};
  }
  if (context.terminal(STDOUT_FILENO).can_redraw) return Done{};
  return Error{ErrorKind::InvalidArgument,
               "--watch needs a terminal that can move its cursor: without it the devices are "
               "printed once"};
}

Result<int> run_devices(const CommandContext& context) {
  MUSTER_TRY(check_watch(context));
  const auto interval = MUSTER_TRY(
      parse_interval("--interval", context.arguments.value("--interval").value_or("1s")));
  auto options = MUSTER_TRY(collector_options(context));
  // One look needs no past.
  options.history = Duration(0);
  const auto host = MUSTER_TRY(find_host(options));
  const bool is_watching = context.arguments.has("--watch");
  if (is_watching) catch_interrupts();
  const auto collector = MUSTER_TRY(Collector::start(options, context.clock));
  if (is_watching) return watch(context, *collector, host, interval);
  const auto snapshot = collector->snapshot();
  if (context.arguments.has("--json")) {
    MUSTER_TRY(context.output.append(devices_json(host, snapshot)));
    return 0;
  }
  const auto terminal = context.terminal(STDOUT_FILENO);
  MUSTER_TRY(context.output.append(page_text(context, host, snapshot, terminal)));
  return 0;
}

}  // namespace

Command devices_command() { return {devices_spec(), run_devices}; }

}  // namespace muster
