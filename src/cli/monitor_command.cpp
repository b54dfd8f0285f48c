#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/telemetry_options.h"
#include "telemetry/collector.h"

namespace muster {
namespace {

CommandSpec monitor_spec() {
  return {.name = "monitor",
          .summary = "watch the devices: a line each a second",
          .usage = "",
          .groups = {watched_machine_flags()},
          .examples =
              "  muster monitor\n"
              "  muster monitor --machine sim:8xH100-80G\n"};
}

std::string device_line(const DeviceStatus& device) {
  auto line = device.name;
  if (!device.is_up) return line + "  down: " + device.down_reason + "\n";
  for (const auto& info : reading_table()) {
    const auto value = device.readings.get(info.reading);
    if (value && info.tier != Tier::Slow) line += fmt::format("  {}={:g}", info.name, *value);
  }
  return line + "\n";
}

Result<int> run_monitor(const CommandContext& context) {
  const auto options = MUSTER_TRY(collector_options(context));
  catch_interrupts();
  const auto collector = MUSTER_TRY(Collector::start(options, context.clock));
  while (interrupt_signal() == 0 && !context.output.is_reader_gone()) {
    const auto snapshot = collector->snapshot();
    for (const auto& device : snapshot.devices) {
      MUSTER_TRY(context.output.append(device_line(device)));
    }
    MUSTER_TRY(context.output.flush());
    constexpr int kSecondMs = 1000;
    ::poll(nullptr, 0, kSecondMs);
  }
  return 0;
}

}  // namespace

Command monitor_command() { return {monitor_spec(), run_monitor}; }

}  // namespace muster
