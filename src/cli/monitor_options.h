#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "metrics/exposition.h"
#include "net/http_server.h"
#include "telemetry/collector.h"
#include "telemetry/line_recorder.h"

namespace muster {

/// What `muster monitor` was asked for.
struct MonitorOptions {
  CollectorOptions collector;
  Duration interval = std::chrono::seconds(1);
  std::vector<Reading> metrics;  // empty: all
  std::optional<LineRecorder::Options> recording;
  bool is_csv = false;  // of the recording; else lines of JSON
  std::optional<ListenAddress> listen;
  MetricSet metric_set = MetricSet::Muster;
  std::vector<std::string> command;  // empty: none
  bool wants_json = false;           // of the report about the command
};

CommandSpec monitor_spec();

/// Errors: InvalidArgument (a metric, interval, size or address that is none, with the nearest or
/// an example; flags that need another), NotFound; all before anything is started.
Result<MonitorOptions> monitor_options(const CommandContext& context);

}  // namespace muster
