// The fleet's loop, and the making of its parts. The owners know each other through interfaces that
// this file connects; none is called before all of them are made.

#include "coordinator/worker_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coordinator/measuring_groups.h"
#include "coordinator/runnable_threads.h"

namespace muster {
namespace {

// Deaths after which a server no longer waits at its start for a group to greet.
constexpr std::uint32_t kStartsWaitedFor = 3;
// Far enough for any timeout, near enough that `deadline - now` cannot overflow.
constexpr Duration kFarthest = std::chrono::hours(1);

// A job waits for memory for half a minute: 1 + 2 + 4 + 8 + 16 s (memory_wait.h).
constexpr std::uint32_t kFullMostOfJob = 6;

Error cancelled_error() { return Error{ErrorKind::Cancelled, "cancelled"}; }

// Today a device is a group.
std::vector<std::vector<Device>> groups_of(const std::vector<Device>& devices) {
  std::vector<std::vector<Device>> groups;
  for (const auto& device : devices) groups.push_back({device});
  return groups;
}

}  // namespace

Result<std::unique_ptr<Fleet>> Fleet::start(FleetOptions options, FleetEvents events,
                                            const Clock& clock) {
  auto inside = std::make_unique<WorkerFleet>(std::move(options), std::move(events), clock);
  MUSTER_TRY(inside->start());
  return std::unique_ptr<Fleet>(new Fleet(std::move(inside)));
}

Fleet::Fleet(std::unique_ptr<WorkerFleet> inside) : inside_(std::move(inside)) {}
Fleet::~Fleet() = default;

Result<std::vector<std::string>> Fleet::wait_for_greetings(const std::function<bool()>& cancelled) {
  return inside_->wait_for_greetings(cancelled);
}

Result<MeasuredPrecisions> Fleet::probe(const Probe& probe,
                                        const std::function<bool()>& cancelled) {
  return inside_->probe(probe, cancelled);
}

FleetLoop& Fleet::loop() { return *inside_; }
FleetTexts& Fleet::texts() { return inside_->work(); }
FleetPlacement& Fleet::placement() { return inside_->work(); }
FleetModels& Fleet::models() { return inside_->models(); }
FleetAdmin& Fleet::admin() { return *inside_; }
FleetView Fleet::view() const { return inside_->view(); }
std::vector<GroupStatus> Fleet::groups() const { return inside_->groups(); }

WorkerFleet::WorkerFleet(FleetOptions options, FleetEvents events, const Clock& clock)
    : options_(std::move(options)),
      events_(std::move(events)),
      clock_(clock),
      table_(options_.devices.size()),
      runner_({.program = options_.worker_program,
               .torch_root = options_.torch_root,
               .group_count = options_.devices.size()},
              signal_.fd(), clock),
      supervisor_({.groups = groups_of(options_.devices),
                   .worker_program = options_.worker_program.string(),
                   .build = options_.build,
                   .gives_up = options_.gives_up,
                   .idle = options_.idle,
                   .drain_limit = options_.drain_limit},
                  {.processes = runner_,
                   .client = *this,
                   .models = table_,
                   .signal = signal_,
                   .clock = clock,
                   .on_notice = [this](const std::string& sentence,
                                       std::size_t group) { notice(sentence, group); },
                   .is_runnable = has_runnable_thread}),
      work_({.group_count = options_.devices.size(),
             .batch_tokens = options_.batch_tokens,
             .weights = options_.weights,
             .dispatch = options_.dispatch,
             .is_low_latency = options_.is_low_latency},
            {.groups = supervisor_,
             .models = table_,
             .events = events_,
             .signal = signal_,
             .clock = clock,
             .ask_canary = [this](std::size_t group,
                                  ModelId model) { models_.ask_canary(group, model); },
             .on_notice =
                 [this](std::size_t group, const std::string& sentence) {
                   supervisor_.notice(group, sentence);
                 }}),
      models_({.canary_period = options_.canary_period,
               .full_most = options_.gives_up ? kFullMostOfJob : 0U},
              {.table = table_,
               .groups = supervisor_,
               .costs = work_,
               .events = *this,
               .signal = signal_,
               .clock = clock,
               .on_wrong_canary = events_.on_wrong_canary,
               .on_full = [this](std::size_t group, ModelId model, const std::string& sentence) {
                 on_full(group, model, sentence);
               }}) {}

bool WorkerFleet::is_waited_for(std::size_t group) const {
  const auto& life = supervisor_.life(group);
  if (life.is_greeted || life.is_given_up || life.is_idle || life.fault) return false;
  if (life.goal != GroupGoal::Serve) return false;
  return options_.gives_up || supervisor_.failed_start_count(group) < kStartsWaitedFor;
}

Result<std::vector<std::string>> WorkerFleet::wait_for_greetings(
    const std::function<bool()>& cancelled) {
  const auto is_any_waited_for = [this] {
    for (std::size_t i = 0; i < table_.group_count(); ++i) {
      if (is_waited_for(i)) return true;
    }
    return false;
  };
  while (is_any_waited_for()) {
    if (cancelled()) return cancelled_error();
    MUSTER_TRY(step(std::chrono::milliseconds(100)));
  }
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < table_.group_count(); ++i) {
    const auto& name = supervisor_.life(i).engine_class;
    const bool is_new = std::find(classes.begin(), classes.end(), name) == classes.end();
    if (!name.empty() && is_new) classes.push_back(name);
  }
  if (classes.empty()) return no_group_error();
  return classes;
}

Error WorkerFleet::no_group_error() const {
  const auto count = table_.group_count();
  if (count == 0) return {ErrorKind::Unavailable, "no device can work: none was named"};
  bool could_none_load = true;
  std::string why;  // of the first that tells it: one that is idle has no reason
  for (std::size_t i = 0; i < count; ++i) {
    const auto& life = supervisor_.life(i);
    could_none_load &= life.load_error.has_value();
    if (why.empty() && !life.reason.empty()) why = fmt::format(": {}: {}", life.name, life.reason);
  }
  if (could_none_load) return *supervisor_.life(0).load_error;
  return {ErrorKind::Unavailable, fmt::format("no device can work{}", why)};
}

Error WorkerFleet::no_measure_error(const std::string& last_end) const {
  if (last_end.empty()) return no_group_error();
  return {ErrorKind::Unavailable, fmt::format("no device can measure precisions: {}", last_end)};
}

Result<MeasuredPrecisions> WorkerFleet::probe(const Probe& probe,
                                              const std::function<bool()>& cancelled) {
  MeasuringGroups measuring(supervisor_, table_.group_count());
  std::optional<std::size_t> asked;
  while (measuring.is_one_left()) {
    if (const auto next = measuring.next()) {
      asked = next;
      const auto sentence = measuring.on_asked(*next);
      if (!sentence.empty()) supervisor_.notice(*next, sentence);
      supervisor_.probe(*next, probe);
    }
    if (cancelled()) return cancelled_error();
    MUSTER_TRY(step(std::chrono::milliseconds(100)));
    measuring.note_ends();
    auto answer = supervisor_.take_verdict();
    if (!answer || !asked) continue;
    auto verdict = MUSTER_TRY(*std::move(answer));
    const auto& life = supervisor_.life(*asked);
    return MeasuredPrecisions{.verdict = std::move(verdict),
                              .processor = life.leader().model,
                              .engine_class = life.engine_class};
  }
  return no_measure_error(measuring.last_end());
}

Status WorkerFleet::step(Duration timeout) {
  const bool was_due = signal_.begin_step();
  if (was_due) timeout = Duration{0};
  // What has come goes first: somebody waits for these rows.
  auto waited = wait(timeout);
  // A large answer comes in many parts, and before the last one nothing has changed.
  const bool is_over = waited && !was_due && runner_.had_only_parts() && clock_.now() < due_;
  if (waited && !is_over) waited = check_time();
  signal_.end_step();
  MUSTER_TRY(std::move(waited));
  if (is_over) return Done{};
  settle();
  models_.finish_checks(clock_.now());
  if (signal_.take_change() && events_.on_change) events_.on_change();
  due_ = time_of_next_step();
  if (options_.gives_up && supervisor_.are_all_given_up()) return no_group_error();
  return Done{};
}

void WorkerFleet::place_submitted() {
  signal_.settle();
  work_.deliver_refusals();
  work_.feed();
  runner_.watch_writes();
  due_ = time_of_next_step();
}

// A step that was due long ago comes after a pause of this process, whether the pause fell into its
// own wait or into its caller's.
Status WorkerFleet::wait(Duration timeout) {
  const auto begun_at = clock_.now();
  auto limit = Duration{0};
  if (timeout > limit) limit = std::clamp(next_deadline() - begun_at, limit, timeout);
  if (limit == Duration{0} && MUSTER_TRY(read_only_answer())) {
    supervisor_.forgive_pause(begun_at, due_);
    return Done{};
  }
  MUSTER_TRY(runner_.wait(limit));
  const auto due = limit == Duration{0} ? due_ : std::max(due_, begun_at + limit);
  supervisor_.forgive_pause(clock_.now(), due);
  return runner_.handle(supervisor_);
}

// On an idle machine what has come is the answer to the only batch: it is read without a question
// for what it is. Of anything else `wait_fd` tells again.
Result<bool> WorkerFleet::read_only_answer() {
  if (!options_.is_low_latency) return false;
  const auto group = work_.group_of_only_text();
  if (!group) return false;
  MUSTER_TRY(runner_.read_frames(*group, supervisor_));
  return supervisor_.sent(*group).empty();
}

Status WorkerFleet::check_time() {
  const auto now = clock_.now();
  MUSTER_TRY(supervisor_.check_time(now));
  models_.decide_disputes(now);
  return Done{};
}

void WorkerFleet::settle() {
  work_.deliver_refusals();
  const auto now = clock_.now();
  for (std::size_t i = 0; i < table_.group_count(); ++i) {
    supervisor_.finish_drain(i, now);
    if (supervisor_.life(i).is_up()) models_.settle(i, now);
    models_.drop_leaving(i);
  }
  supervisor_.release_last();
  work_.feed();
  runner_.watch_writes();
}

// Not worked out anew: whoever brings a time forward outside of a step makes the next one due.
TimePoint WorkerFleet::next_deadline() const {
  const auto now = clock_.now();
  return signal_.is_due() ? now : std::min(due_, now + kFarthest);
}

TimePoint WorkerFleet::time_of_next_step() const {
  const auto now = clock_.now();
  if (signal_.is_due()) return now;
  return std::min({now + kFarthest, supervisor_.next_deadline(now), models_.next_deadline()});
}

void WorkerFleet::notice(const std::string& sentence, std::size_t group) const {
  if (events_.on_notice) events_.on_notice(sentence, group);
}

FleetView WorkerFleet::view() const {
  const auto& dispatcher = work_.dispatcher();
  FleetView view{.groups = groups(),
                 .strategy = dispatcher.options().strategy,
                 .pending_count = work_.pending_count(),
                 .predicted_drain = dispatcher.predicted_drain(),
                 .decisions = dispatcher.decisions()};
  for (std::size_t i = 0; i < kLaneCount; ++i) {
    view.queues.at(i) = dispatcher.queued(static_cast<Lane>(i));
  }
  return view;
}

std::vector<GroupStatus> WorkerFleet::groups() const {
  std::vector<GroupStatus> all(table_.group_count());
  for (std::size_t i = 0; i < all.size(); ++i) {
    supervisor_.describe(i, all[i]);
    models_.describe(i, all[i]);
    work_.describe(i, all[i]);
  }
  return all;
}

}  // namespace muster
