// A sweep from its file to its table. All that can be refused is refused before the first server is
// started and before anything is written: the file, its data set, models, devices, placement, and
// the command of every point. Then each point is kept the moment it is finished, so that whatever
// ends the sweep leaves whole points behind.
#include "cli/sweep/sweep_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "cli/bench_measurement.h"
#include "cli/interrupt.h"
#include "cli/sweep/availability_check.h"
#include "cli/sweep/placement_check.h"
#include "cli/sweep/point_run.h"
#include "cli/sweep/sweep_facts.h"
#include "cli/sweep/sweep_view.h"
#include "jobs/output_lock.h"
#include "sweep/point_store.h"
#include "sweep/sweep_progress.h"
#include "terminal/terminal_info.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kInvalidExit = 22;  // docs/errors.md has them
constexpr int kObjectiveExit = 24;
constexpr int kSignalBase = 128;
constexpr std::size_t kFailuresInARow = 3;  // as ai_energy_benchmarks gives up
constexpr std::uint64_t kFileBytesMost = 1 << 20;

// Everything that is known before the first point.
struct Sweep {
  SweepConfig config;
  SweepFacts facts;
  SweepDevices devices;
  std::vector<SweepPoint> points = {};
  std::map<std::string, MemoryLimits> limits = {};  // by point
};

struct FailedPoint {
  const SweepPoint* point = nullptr;
  Error error;
};

Result<SweepStart> start_of(const Arguments& arguments) {
  const bool resumes = arguments.has("--resume");
  const bool restarts = arguments.has("--restart");
  if (resumes && restarts) {
    return invalid_error("--resume keeps what is there and --restart drops it: one of them");
  }
  return resumes ? SweepStart::Resume : restarts ? SweepStart::Restart : SweepStart::Fresh;
}

Result<SweepConfig> read_config(const Arguments& arguments) {
  const auto& words = arguments.positionals;
  if (words.size() < 2) {
    return invalid_error(
        "muster bench run wants a file: `muster bench init -o bench.yaml` writes one");
  }
  const auto text = MUSTER_TRY(read_file(words[1], kFileBytesMost));
  const std::vector<std::string> overrides(words.begin() + 2, words.end());
  return SweepConfig::read(text, words[1], overrides);
}

Status find_limits(const CommandContext& context, Sweep& sweep) {
  const auto& config = sweep.config;
  if (!config.is_given(SweepKey::MaxMemory) && !config.is_given(SweepKey::DeviceMap)) return Done{};
  const auto placement = MUSTER_TRY(PlacementCheck::create(context, config, sweep.facts));
  for (const auto& point : sweep.points) {
    sweep.limits[point.id] = MUSTER_TRY(placement.check(point));
  }
  return Done{};
}

Result<Sweep> prepare(const CommandContext& context) {
  auto config = MUSTER_TRY(read_config(context.arguments));
  auto facts = MUSTER_TRY(find_sweep_facts(config));
  auto devices = MUSTER_TRY(check_sweep_devices(context, config));
  for (const auto& line : availability_lines(devices.all)) say_bench_step(line);
  if (!context.arguments.has("--allow-missing")) MUSTER_TRY(refuse_missing(config, devices.all));
  facts.devices = devices.used;
  Sweep sweep{
      .config = std::move(config), .facts = std::move(facts), .devices = std::move(devices)};
  sweep.points = MUSTER_TRY(sweep_points(sweep.config, sweep.facts));
  if (sweep.points.empty()) {
    return Error{ErrorKind::NotFound,
                 "no point has a device that can be used: " +
                     fmt::format("{}", fmt::join(sweep.devices.all.errors, "; "))};
  }
  MUSTER_TRY(find_limits(context, sweep));
  for (const auto& point : sweep.points) {
    MUSTER_TRY(point_command(context, sweep.config, point, sweep.facts.task));
  }
  return sweep;
}

Status make_folder_of(const std::filesystem::path& file) {
  if (!file.has_parent_path()) return Done{};
  std::error_code fault;
  std::filesystem::create_directories(file.parent_path(), fault);
  if (fault) return system_error(file.parent_path().string(), "make", fault.value());
  return Done{};
}

// Measures the points of a sweep and knows how far it came.
class SweepRun {
 public:
  SweepRun(const CommandContext& context, const Sweep& sweep, PointStore store)
      : context_(context), sweep_(sweep), store_(std::move(store)) {}

  /// Reads what is there; drops it where that was asked for.
  Status start(SweepStart start);
  /// Errors: those of keeping a point.
  Status measure_all();
  Result<int> finish() const;

 private:
  Result<bool> measure_one(const SweepPoint& point, std::size_t number);
  PointOrder order_of(const SweepPoint& point) const;
  std::vector<Json> records() const;
  std::string progress_text() const;
  std::string report_text() const;
  std::string report_json() const;
  int exit_code_of_points() const;

  const CommandContext& context_;
  const Sweep& sweep_;
  PointStore store_;
  std::vector<std::size_t> wanted_;
  std::map<std::string, KeptPoint> kept_;  // of this sweep
  std::vector<FailedPoint> failed_;
  std::size_t failures_in_a_row_ = 0;
};

Status SweepRun::start(SweepStart start) {
  std::map<std::string, bool> valid;
  std::set<std::string> ids;
  for (const auto& point : sweep_.points) {
    ids.insert(point.id);
    auto kept = MUSTER_TRY(store_.find(point.id));
    if (!kept) continue;
    valid[point.id] = kept->is_valid;
    kept_.emplace(point.id, std::move(*kept));
  }
  wanted_ =
      MUSTER_TRY(points_to_measure(sweep_.points, valid, start, store_.files().table.string()));
  if (start == SweepStart::Restart) {
    kept_.clear();
    return store_.drop(ids);
  }
  std::vector<KeptPoint> there;
  for (const auto& [id, point] : kept_) there.push_back(point);
  return store_.complete(there);
}

PointOrder SweepRun::order_of(const SweepPoint& point) const {
  PointOrder order{.point = &point, .task = sweep_.facts.task};
  const auto devices = sweep_.devices.by_list.find(point.named_devices);
  if (devices != sweep_.devices.by_list.end()) order.availability = devices->second;
  const auto limits = sweep_.limits.find(point.id);
  if (limits != sweep_.limits.end()) order.limits = limits->second;
  return order;
}

// Whether the sweep goes on.
Result<bool> SweepRun::measure_one(const SweepPoint& point, std::size_t number) {
  say_bench_step(fmt::format("point {} of {}{}{}", number, wanted_.size(),
                             point.label.empty() ? "" : ": ", point.label));
  auto measured = measure_point(context_, sweep_.config, order_of(point));
  if (!measured && interrupt_signal() != 0) return false;
  if (!measured) {
    say_bench_step(fmt::format("not measured: {}", measured.error().message));
    failed_.push_back({&point, measured.error()});
    // A server of others that is gone is gone for all points.
    return !sweep_.config.is_remote() && ++failures_in_a_row_ < kFailuresInARow;
  }
  failures_in_a_row_ = 0;
  MUSTER_TRY(store_.keep(measured->json, measured->kept));
  kept_.insert_or_assign(point.id, std::move(measured->kept));
  return interrupt_signal() == 0;
}

Status SweepRun::measure_all() {
  std::size_t number = 0;
  for (const auto index : wanted_) {
    const auto goes_on = measure_one(sweep_.points[index], ++number);
    if (!goes_on) {
      return Error{goes_on.error().kind,
                   fmt::format("{}; {}", goes_on.error().message, progress_text())};
    }
    if (!*goes_on) break;
  }
  return Done{};
}

// In the order of the file's values, not in that of measuring.
std::vector<Json> SweepRun::records() const {
  auto points = sweep_.points;
  std::ranges::sort(points, {}, &SweepPoint::number);
  std::vector<Json> all;
  for (const auto& point : points) {
    const auto found = kept_.find(point.id);
    if (found != kept_.end()) all.push_back(found->second.record);
  }
  return all;
}

std::string SweepRun::progress_text() const {
  return fmt::format("{} of {} points are in {}; --resume measures the others", kept_.size(),
                     sweep_.points.size(), store_.files().table.string());
}

std::string SweepRun::report_text() const {
  std::vector<std::string> swept;
  for (const auto& row : sweep_keys()) {
    if (sweep_.config.at(row.key).texts.size() > 1) swept.emplace_back(row.column);
  }
  return sweep_text(records(), swept, context_.terminal(STDOUT_FILENO).width);
}

std::string SweepRun::report_json() const {
  auto failed = Json::array();
  for (const auto& [point, error] : failed_) {
    failed.push_back({{"point", point->id}, {"label", point->label}, {"error", error.message}});
  }
  const Json json{{"table", store_.files().table.string()},
                  {"folder", store_.files().folder.string()},
                  {"points", records()},
                  {"failed", std::move(failed)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

int SweepRun::exit_code_of_points() const {
  const bool is_valid =
      std::ranges::all_of(kept_, [](const auto& one) { return one.second.is_valid; });
  if (!is_valid) return kInvalidExit;
  const bool is_missed = std::ranges::any_of(kept_, [](const auto& one) {
    return record_value(one.second.record, "summary", "objectives_met") == false;
  });
  return is_missed ? kObjectiveExit : 0;
}

Result<int> SweepRun::finish() const {
  MUSTER_TRY(
      context_.output.append(context_.arguments.has("--json") ? report_json() : report_text()));
  MUSTER_TRY(context_.output.flush());  // before what is said of it
  if (interrupt_signal() != 0) {
    say_bench_step("interrupted; " + progress_text());
    return kSignalBase + interrupt_signal();
  }
  if (!failed_.empty()) {
    const auto& first = failed_.front();
    return Error{first.error.kind, fmt::format("{}{}{}; {}", first.point->label,
                                               first.point->label.empty() ? "" : ": ",
                                               first.error.message, progress_text())};
  }
  say_bench_step(fmt::format("{} points are in {}, each with its samples in {}", kept_.size(),
                             store_.files().table.string(), store_.files().folder.string()));
  return exit_code_of_points();
}

}  // namespace

Result<int> run_bench_file(const CommandContext& context) {
  const auto start = MUSTER_TRY(start_of(context.arguments));
  const auto sweep = MUSTER_TRY(prepare(context));
  const auto files = sweep_files(sweep.config);
  MUSTER_TRY(make_folder_of(files.table));
  auto lock_file = files.table;
  lock_file += ".lock";
  const auto lock = MUSTER_TRY(OutputLock::take(lock_file, files.table));
  auto store = MUSTER_TRY(PointStore::open(files));
  SweepRun run(context, sweep, std::move(store));
  MUSTER_TRY(run.start(start));
  catch_interrupts();
  MUSTER_TRY(run.measure_all());
  return run.finish();
}

}  // namespace muster
