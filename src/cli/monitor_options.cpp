// Flags that only mean something together are checked together, and each refusal names the missing
// flag. A command must stand behind "--": without it a flag of the command would be taken for one
// of ours.

#include "cli/monitor_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "cli/interval.h"
#include "cli/memory_size.h"
#include "cli/monitor_csv.h"
#include "cli/telemetry_options.h"
#include "telemetry/recording.h"

namespace muster {
namespace {

std::vector<std::string> reading_names() {
  std::vector<std::string> names;
  for (const auto& info : reading_table()) names.emplace_back(info.name);
  return names;
}

// In the order in which they were named: the table on a terminal has its columns so.
Result<std::vector<Reading>> parse_metrics(const std::string& text) {
  std::vector<Reading> readings;
  for (const auto& word : split(text, ',')) {
    const std::string name(trim(word));
    const auto reading = find_reading(name);
    if (reading) {
      readings.push_back(*reading);
      continue;
    }
    const auto nearest = nearest_name(name, reading_names());
    return invalid_error(fmt::format(
        "--metrics: no reading has the name \"{}\"; {}", name,
        nearest ? fmt::format("did you mean {}?", *nearest) : "docs/metrics.md lists them"));
  }
  return readings;
}

Result<std::uint32_t> parse_count(std::string_view flag, const std::string& text) {
  constexpr std::uint32_t kMost = 1000;
  std::uint32_t count = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (fault != std::errc{} || end != text.data() + text.size() || count > kMost) {
    return invalid_error(
        fmt::format("{} must be a whole number up to {}: \"{}\"", flag, kMost, text));
  }
  return count;
}

Result<std::optional<LineRecorder::Options>> parse_recording(const Arguments& arguments) {
  const auto file = arguments.value("--out");
  const auto size = arguments.value("--rotate-size");
  const auto keep = arguments.value("--rotate-keep");
  if (!file) {
    if (!size && !keep) return std::optional<LineRecorder::Options>{};
    return invalid_error(
        fmt::format("{} needs --out FILE", size ? "--rotate-size" : "--rotate-keep"));
  }
  if (keep && !size) return invalid_error("--rotate-keep needs --rotate-size SIZE");
  LineRecorder::Options options;
  options.file = *file;
  if (size) options.rotate_size = MUSTER_TRY(parse_memory_size("--rotate-size", *size));
  if (keep) options.rotate_keep = MUSTER_TRY(parse_count("--rotate-keep", *keep));
  return std::optional(options);
}

Result<MetricSet> parse_metric_set(const Arguments& arguments) {
  const auto text = arguments.value("--compat");
  if (!text) return MetricSet::Muster;
  if (*text != "dcgm") return invalid_error(fmt::format("--compat must be dcgm: \"{}\"", *text));
  if (!arguments.has("--listen")) return invalid_error("--compat needs --listen ADDR:PORT");
  return MetricSet::Dcgm;
}

Status check_command(const CommandContext& context) {
  if (context.arguments.positionals.empty()) {
    if (!context.words.empty() && context.words.back() == "--") {
      return invalid_error("behind -- there is no command: muster monitor -- CMD");
    }
    if (!context.arguments.has("--json")) return Done{};
    return invalid_error("--json is for the report about a command: muster monitor --json -- CMD");
  }
  if (std::ranges::count(context.words, "--") > 0) return Done{};
  return invalid_error(fmt::format("to run a command, put -- before it: muster monitor -- {}",
                                   context.arguments.positionals.front()));
}

}  // namespace

CommandSpec monitor_spec() {
  return {.name = "monitor",
          .summary = "record devices, serve readings to Prometheus, measure a command",
          .usage = "[-- CMD...]",
          .positional_most = std::numeric_limits<std::size_t>::max(),
          .groups = {{"Recording",
                      {},
                      {{"--out", "FILE",
                        "a line of JSON each interval, at the end of this file; .csv: a line for "
                        "each device"},
                       {"--interval", "TIME", "100ms, 0.5s, 2m (default: 1s)"},
                       {.name = "--metrics",
                        .value_name = "LIST",
                        .help = "only these readings, as power_instant_watts,energy_joules",
                        .choices = reading_names()},
                       {"--processes", "N",
                        "with --out in JSON: also the N processes with the most CPU time"},
                       {"--rotate-size", "SIZE",
                        "a new file after so much, as 100MB; FILE.1 is the last one"},
                       {"--rotate-keep", "N", "so many older files (default: 5)"}}},
                     {"Prometheus",
                      {},
                      {{"--listen", "ADDR:PORT", "serve /metrics there; port 0: a free one"},
                       {.name = "--compat",
                        .value_name = "dcgm",
                        .help = "the names of dcgm-exporter as well",
                        .choices = {"dcgm"}}}},
                     {"Measuring a command",
                      {},
                      {{"--json", "", "the report as JSON, the last line of standard output"}}},
                     watched_machine_flags()},
          .examples =
              "  muster monitor --out stats.jsonl --interval 1s\n"
              "  muster monitor --out stats.csv --metrics power_instant_watts,energy_joules\n"
              "  muster monitor --listen 127.0.0.1:9400\n"
              "  muster monitor -- python3 train.py\n",
          .words = {WordKind::File}};
}

Result<MonitorOptions> monitor_options(const CommandContext& context) {
  const auto& arguments = context.arguments;
  MonitorOptions options;
  MUSTER_TRY(check_command(context));
  if (const auto text = arguments.value("--interval")) {
    options.interval = MUSTER_TRY(parse_interval("--interval", *text));
  }
  if (const auto text = arguments.value("--metrics")) {
    options.metrics = MUSTER_TRY(parse_metrics(*text));
  }
  options.recording = MUSTER_TRY(parse_recording(arguments));
  options.is_csv = options.recording && options.recording->file.extension() == ".csv";
  if (options.is_csv) {
    options.recording->header = csv_header(options.metrics);
  } else if (options.recording) {
    options.recording->keys = recording_keys();
  }
  if (const auto text = arguments.value("--processes")) {
    options.process_count = MUSTER_TRY(parse_count("--processes", *text));
    if (!options.recording || options.is_csv) {
      return invalid_error("--processes needs --out FILE, which is no .csv");
    }
    if (arguments.has("--machine")) {
      return invalid_error("--processes are those of this machine: --machine has none");
    }
  }
  if (const auto text = arguments.value("--listen")) {
    options.listen = MUSTER_TRY(parse_listen_address(*text));
  }
  options.metric_set = MUSTER_TRY(parse_metric_set(arguments));
  options.command = arguments.positionals;
  options.wants_json = arguments.has("--json");
  options.collector = MUSTER_TRY(collector_options(context));
  return options;
}

}  // namespace muster
