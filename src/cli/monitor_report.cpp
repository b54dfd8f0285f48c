// Energy of a window is the difference of two counter readings. A counter changes in steps, so both
// ends of the window are placed at a step that was seen (an edge), and the error that is left is
// reported beside the value. Samples come on the collector's thread; the lock keeps one that
// arrives late from changing a window that is closed.

#include "cli/monitor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_values.h"
#include "base/text.h"
#include "terminal/table.h"
#include "terminal/text_wrap.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// Two refreshes of the slowest counter that is known, and a little.
constexpr Duration kEdgeLimit = std::chrono::milliseconds(250);

// The sampler says of each device that it watches why it has no edge; what it does not name, it
// does not watch.
EnergyEdge edge_of(const std::vector<EnergyEdge>& edges, std::uint32_t device) {
  for (const auto& edge : edges) {
    if (edge.device == device) return edge;
  }
  EnergyEdge none;
  none.device = device;
  none.missing_reason =
      "its energy counter was not read: the device is left out or not listed any more, or its "
      "driver is not open yet";
  return none;
}

Json statistics_json(const std::optional<ReadingStatistics>& statistics) {
  if (!statistics) return nullptr;
  return {{"samples", statistics->count},
          {"min", statistics->min},
          {"mean", statistics->mean},
          {"max", statistics->max},
          {"p95", statistics->p95}};
}

Json energy_json(const WindowEnergy& energy) {
  Json json{{"joules", or_null(energy.joules)},
            {"mean_watts", or_null(energy.mean_watts)},
            {"error_joules", or_null(energy.error_joules)}};
  json["method"] = energy.joules ? Json(energy.method) : Json(nullptr);
  if (!energy.joules) json["missing_reason"] = energy.missing_reason;
  if (!energy.counter_missing_reason.empty()) {
    json["counter_missing_reason"] = energy.counter_missing_reason;
  }
  json["was_reset"] = energy.was_reset;
  json["exclusive"] = energy.is_exclusive;
  json["throttled"] = energy.was_throttled;
  return json;
}

// Whole GPUs alone: a slice's use is within that of its GPU already.
TotalUse total_of_gpus(const CommandUse& use) {
  std::vector<const DeviceUse*> gpus;
  for (const auto& device : use.devices) {
    const bool is_gpu = device.identity.device.kind != DeviceKind::Cpu && !device.identity.parent;
    if (is_gpu) gpus.push_back(&device.use);
  }
  return total_use(gpus);
}

std::string energy_text(const WindowEnergy& energy) {
  return fmt::format("{:.1f} J ±{:.1f} ({})", *energy.joules, *energy.error_joules, energy.method);
}

// "2.004 s; the command itself: CPU 1.51 s user …".
std::string own_text(const CommandUse& use) {
  if (!use.own) return fmt::format("{:.3f} s", use.wall_seconds);
  const auto& own = *use.own;
  const double cpu = own.user_seconds + own.system_seconds;
  return fmt::format(
      "{:.3f} s; the command itself: CPU {:.3f} s user, {:.3f} s system ({:.0f} % of a core), "
      "memory {} at most, storage {} read, {} written",
      use.wall_seconds, own.user_seconds, own.system_seconds,
      use.wall_seconds > 0 ? 100 * cpu / use.wall_seconds : 0, human_bytes(own.peak_memory_bytes),
      human_bytes(own.read_bytes), human_bytes(own.written_bytes));
}

Json own_json(const std::optional<ProcessUse>& own) {
  if (!own) return nullptr;
  return {{"user_seconds", own->user_seconds},
          {"system_seconds", own->system_seconds},
          {"peak_memory_bytes", own->peak_memory_bytes},
          {"read_bytes", own->read_bytes},
          {"written_bytes", own->written_bytes}};
}

std::vector<std::string> notes_of(const CommandUse::OfDevice& device) {
  std::vector<std::string> notes;
  const auto note = [&](const std::string& text) {
    notes.push_back(fmt::format("{}: {}", device.name, text));
  };
  note(device.energy.joules ? "energy " + energy_text(device.energy)
                            : "no energy: " + device.energy.missing_reason);
  if (!device.energy.is_exclusive) note("other programs used it meanwhile");
  if (device.energy.was_throttled) note("a power or heat limit held its clock down");
  return notes;
}

// A line for each reading that there is: what it is, and four numbers under their names.
void add_rows(const CommandUse::OfDevice& device, Table& table) {
  struct Row {
    const char* name;
    std::optional<ReadingStatistics> statistics;
    double factor;
    int decimals;
  };
  constexpr double kGb = 1e-9;
  const Row rows[] = {{"busy %", device.use.utilization(), 100, 0},
                      {"memory GB", device.use.memory_bytes(), kGb, 1},
                      {"power W", device.use.power_watts(), 1, 0},
                      {"temperature C", device.use.temperature(), 1, 0}};
  auto name = device.name;
  for (const auto& row : rows) {
    if (!row.statistics) continue;
    const auto text = [&](double value) {
      return fmt::format("{:.{}f}", value * row.factor, row.decimals);
    };
    table.add_row({name, row.name, text(row.statistics->min), text(row.statistics->mean),
                   text(row.statistics->p95), text(row.statistics->max)});
    name.clear();
  }
}

}  // namespace

Result<std::shared_ptr<CommandMeter>> CommandMeter::start(Collector& collector,
                                                          const Clock& clock) {
  auto edges = MUSTER_TRY(collector.find_edges(kEdgeLimit));
  // A CPU that was slow to answer has held up all others: their edges are sought once more.
  const auto is_old = [&](const EnergyEdge& edge) {
    return edge.at && clock.now() - *edge.at > kEdgeLimit;
  };
  if (std::ranges::any_of(edges, is_old)) edges = MUSTER_TRY(collector.find_edges(kEdgeLimit));
  const std::shared_ptr<CommandMeter> meter(new CommandMeter(collector, clock, edges));
  collector.subscribe([meter](const DeviceSample& sample) { meter->add(sample); });
  return meter;
}

CommandMeter::CommandMeter(const Collector& collector, const Clock& clock,
                           const std::vector<EnergyEdge>& edges)
    : clock_(clock), begin_(clock.now()) {
  const auto& devices = collector.machine().devices;
  for (std::uint32_t i = 0; i < devices.size(); ++i) {
    use_.devices.push_back({devices[i], shown_name(devices[i], devices), {}, {}});
    windows_.emplace_back(begin_, edge_of(edges, i));
  }
}

// The load of a CPU is that since the visit before. What is read just after the end is still about
// the command, unless it is of so short a while that the kernel's ticks (10 ms) say little of it.
bool CommandMeter::counts(const DeviceSample& sample) const {
  if (is_over_ || sample.at < begin_) return false;
  if (!end_ || sample.at <= *end_) return true;
  constexpr Duration kShortest = std::chrono::milliseconds(100);
  const auto& device = use_.devices[sample.device];
  if (device.identity.device.kind != DeviceKind::Cpu) return false;
  return !device.counted_to ||
         (*device.counted_to <= *end_ && sample.at - *device.counted_to >= kShortest);
}

void CommandMeter::add(const DeviceSample& sample) {
  const MutexLock lock(mutex_);
  if (!counts(sample)) return;
  use_.devices[sample.device].use.add(sample);
  use_.devices[sample.device].counted_to = sample.at;
  windows_[sample.device].add(sample);
}

void CommandMeter::set_shared(std::uint32_t device) {
  const MutexLock lock(mutex_);
  windows_[device].set_shared();
}

CommandUse CommandMeter::finish(Collector& collector) {
  const auto end = clock_.now();
  {
    const MutexLock lock(mutex_);
    // Taken before the edge is looked for: the wait for it is no part of the command's time.
    end_ = end;
  }
  const auto found = collector.find_edges(kEdgeLimit);
  const MutexLock lock(mutex_);
  is_over_ = true;
  use_.wall_seconds = seconds(end - begin_);
  for (std::uint32_t i = 0; i < windows_.size(); ++i) {
    EnergyEdge edge;
    if (found) {
      edge = edge_of(*found, i);
    } else {
      edge.missing_reason = found.error().message;
    }
    use_.devices[i].energy = windows_[i].close(end, edge);
  }
  return use_;
}

std::string command_use_text(const CommandUse& use, const TerminalInfo& terminal) {
  const Wrap wrap{.width = terminal.width, .indent = 2};
  auto out = wrapped(own_text(use), wrap);
  out += wrapped("the devices meanwhile, with all that ran on them (p95: 95 % are below)", wrap);
  Table table({{"device"},
               {"reading"},
               {"min", Align::Right},
               {"mean", Align::Right},
               {"p95", Align::Right},
               {"max", Align::Right}});
  std::string notes;
  for (const auto& device : use.devices) {
    add_rows(device, table);
    for (const auto& note : notes_of(device)) notes += wrapped(note, wrap);
  }
  return out + table.render(terminal.width, terminal.has_color) + notes;
}

std::string command_use_json(const CommandUse& use) {
  auto devices = Json::array();
  for (const auto& device : use.devices) {
    Json json{{"name", device.name}, {"model", device.identity.device.model}};
    if (device.identity.device.uuid) json["uuid"] = *device.identity.device.uuid;
    json["samples"] = device.use.sample_count();
    json["utilization_ratio"] = statistics_json(device.use.utilization());
    json["memory_used_bytes"] = statistics_json(device.use.memory_bytes());
    const auto memory = device.use.memory_bytes();
    json["peak_memory_bytes"] = memory ? Json(memory->max) : Json(nullptr);
    json["power_watts"] = statistics_json(device.use.power_watts());
    json["temperature_celsius"] = statistics_json(device.use.temperature());
    json["energy"] = energy_json(device.energy);
    devices.push_back(std::move(json));
  }
  const auto total = total_of_gpus(use);
  const Json json{{"wall_seconds", use.wall_seconds},
                  {"command", own_json(use.own)},
                  {"devices", std::move(devices)},
                  {"totals",
                   {{"total_avg_utilization", or_null(total.total_avg_utilization)},
                    {"total_max_utilization", or_null(total.total_max_utilization)},
                    {"total_avg_memory_mb", or_null(total.total_avg_memory_mb)},
                    {"total_max_memory_mb", or_null(total.total_max_memory_mb)},
                    {"total_avg_power_w", or_null(total.total_avg_power_w)},
                    {"total_max_power_w", or_null(total.total_max_power_w)},
                    {"total_samples", total.total_samples},
                    {"avg_utilization_per_gpu", or_null(total.avg_utilization_per_gpu)},
                    {"avg_memory_per_gpu_mb", or_null(total.avg_memory_per_gpu_mb)},
                    {"any_gpu_active", total.any_gpu_active}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
