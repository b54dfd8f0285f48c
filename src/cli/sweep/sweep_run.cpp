// A sweep from its plan to its table. Each point is kept the moment it is finished, so that
// whatever ends the sweep leaves whole points behind. A point that cannot be measured costs itself
// alone, as long as there is something that can be.
#include "cli/sweep/sweep_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/build_info.h"
#include "base/file.h"
#include "cli/bench_measurement.h"
#include "cli/interrupt.h"
#include "cli/sweep/point_run.h"
#include "cli/sweep/sweep_facts.h"
#include "cli/sweep/sweep_plan.h"
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
constexpr int kUnknownExit = 25;
constexpr int kSignalBase = 128;
constexpr std::size_t kFailuresMost = 3;  // before the first success; as ai_energy_benchmarks

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

// Measures the points of a sweep and knows how far it came.
class SweepRun {
 public:
  SweepRun(const CommandContext& context, const SweepPlan& plan, PointStore store)
      : context_(context), plan_(plan), store_(std::move(store)) {}

  /// Reads what is there; drops it where that was asked for.
  Status start(SweepStart start);
  /// Errors: those of check_sweep_facts and of keeping a point.
  Status measure_all();
  Result<int> finish() const;

 private:
  Result<bool> measure_one(const SweepPoint& point, std::size_t number);
  bool goes_on() const;
  PointOrder order_of(const SweepPoint& point) const;
  std::vector<Json> records() const;
  std::string progress_text() const;
  std::string report_text() const;
  std::string report_json() const;
  int exit_code_of_points() const;

  const CommandContext& context_;
  const SweepPlan& plan_;
  PointStore store_;
  std::vector<std::size_t> wanted_;
  std::map<std::string, KeptPoint> kept_;  // of this sweep
  std::vector<FailedPoint> failed_;
};

Status SweepRun::start(SweepStart start) {
  std::map<std::string, bool> valid;
  for (const auto& point : plan_.points) {
    auto kept = MUSTER_TRY(store_.find(point.id));
    if (!kept) continue;
    valid[point.id] = kept->is_valid;
    kept_.emplace(point.id, std::move(*kept));
  }
  if (start == SweepStart::Fresh) {
    // Rows whose points' files are gone, or lie in another folder: they would be written over.
    for (const auto& id : store_.table().points()) valid.emplace(id, false);
  }
  const auto place =
      fmt::format("{} and {}", store_.files().table.string(), store_.files().folder.string());
  wanted_ = MUSTER_TRY(points_to_measure(plan_.points, valid, start, place));
  MUSTER_TRY(store_.begin());
  if (const auto folder = plan_.config.text(SweepKey::MetricsOutputDir)) {
    MUSTER_TRY(make_folder(*folder));
  }
  if (start == SweepStart::Restart) {
    kept_.clear();
    return store_.drop();
  }
  std::vector<KeptPoint> there;
  for (const auto& [id, point] : kept_) there.push_back(point);
  MUSTER_TRY(store_.complete(there));
  const auto others = other_builds_text(store_.table(), store_.files().table.string(), build_name(),
                                        plan_.config.is_remote());
  if (!others.empty()) say_bench_step(others);
  return Done{};
}

PointOrder SweepRun::order_of(const SweepPoint& point) const {
  PointOrder order{.point = &point, .task = plan_.facts.task, .settings = plan_.facts.settings};
  const auto devices = plan_.devices.by_list.find(point.named_devices);
  if (devices != plan_.devices.by_list.end()) order.availability = devices->second;
  const auto limits = plan_.limits.find(point.id);
  if (limits != plan_.limits.end()) order.limits = limits->second;
  return order;
}

// Behind a point that could not be measured. Where nothing can be measured, something else than a
// point is wrong: a key, the name of a model. A server that runs already may refuse one point and
// take the next, but one that is gone is gone for all.
bool SweepRun::goes_on() const {
  if (kept_.empty() && failed_.size() >= kFailuresMost) return false;
  return !plan_.config.is_remote() || gives_sign_of_life(plan_.config);
}

// Whether the sweep goes on. A point whose files changed under it is not the one of its name, and
// no other point would be.
Result<bool> SweepRun::measure_one(const SweepPoint& point, std::size_t number) {
  say_bench_step(fmt::format("point {} of {}{}{}", number, wanted_.size(),
                             point.label.empty() ? "" : ": ", point.label));
  auto measured = measure_point(context_, plan_.config, order_of(point));
  if (!measured && interrupt_signal() != 0) return false;
  if (!measured) {
    say_bench_step(fmt::format("not measured: {}", measured.error().message));
    failed_.push_back({&point, measured.error()});
    return goes_on();
  }
  MUSTER_TRY(check_sweep_facts(context_.config, plan_.config, plan_.facts));
  MUSTER_TRY(store_.keep(measured->json, measured->kept));
  kept_.insert_or_assign(point.id, std::move(measured->kept));
  return interrupt_signal() == 0;
}

Status SweepRun::measure_all() {
  std::size_t number = 0;
  for (const auto index : wanted_) {
    const auto is_more = measure_one(plan_.points[index], ++number);
    if (!is_more) {
      return Error{is_more.error().kind,
                   fmt::format("{}; {}", is_more.error().message, progress_text())};
    }
    if (!*is_more) break;
  }
  return Done{};
}

// In the order of the file's values, not in that of measuring.
std::vector<Json> SweepRun::records() const {
  auto points = plan_.points;
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
                     plan_.points.size(), store_.files().table.string());
}

std::string SweepRun::report_text() const {
  std::vector<std::string> swept;
  for (const auto& row : sweep_keys()) {
    if (plan_.config.at(row.key).texts.size() > 1) swept.emplace_back(row.column);
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
  if (is_missed) return kObjectiveExit;
  const bool is_unknown = std::ranges::any_of(kept_, [](const auto& one) {
    return record_value(one.second.record, "config", "slo").is_string() &&
           record_value(one.second.record, "summary", "objectives_met").is_null();
  });
  return is_unknown ? kUnknownExit : 0;
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

// Of a link the file behind it is locked: two names of one table are one table.
Result<OutputLock> take_lock(const std::filesystem::path& out) {
  auto file = MUSTER_TRY(followed_path(out));
  file += ".lock";
  return OutputLock::take(file, out, "by reporter.output_file");
}

}  // namespace

Result<int> run_bench_file(const CommandContext& context) {
  const auto start = MUSTER_TRY(start_of(context.arguments));
  const auto plan = MUSTER_TRY(plan_sweep(context));
  const auto files = sweep_files(plan.config);
  MUSTER_TRY(make_folder(files.table.parent_path()));
  MUSTER_TRY(make_folder(files.folder.parent_path()));
  const auto table_lock = MUSTER_TRY(take_lock(files.table));
  const auto folder_lock = MUSTER_TRY(take_lock(files.folder));
  auto store = MUSTER_TRY(PointStore::open(files));
  SweepRun run(context, plan, std::move(store));
  MUSTER_TRY(run.start(start));
  catch_interrupts();
  MUSTER_TRY(run.measure_all());
  return run.finish();
}

}  // namespace muster
