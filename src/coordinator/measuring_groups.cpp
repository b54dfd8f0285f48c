// A measurement that no worker survives would be asked for again without end, before a server
// listens. So ends are counted here, whoever caused them: a kill from outside is no fault of the
// worker's, and comes back all the same where the machine has too little memory.

#include "coordinator/measuring_groups.h"

#include <fmt/format.h>

#include <utility>

namespace muster {
namespace {

// As for starts (restart_policy.h).
constexpr std::uint32_t kLivesMost = 3;

// One that could not be started again counts, too.
std::uint32_t ended_lives(const GroupLife& life) {
  if (life.serial == 0) return 0;  // it has been idle until now
  return life.restart_count + (life.has_processes ? 0U : 1U);
}

// One that has not greeted yet may.
bool computes(const GroupLife& life) { return !life.engine_class.starts_with("cuda/none/"); }

// It serves, or will by itself.
bool may_serve(const GroupLife& life) {
  return !life.is_given_up && !life.is_idle && !life.is_stuck && !life.fault &&
         life.goal == GroupGoal::Serve;
}

}  // namespace

MeasuringGroups::MeasuringGroups(const WorkerGroups& groups, std::size_t count)
    : groups_(groups), lives_(count) {
  for (std::size_t i = 0; i < count; ++i) lives_[i].ended_before = ended_lives(groups_.life(i));
}

// Those that compute. The others, too, where none of these was there from the start: how the last
// one ended is worth more than that a GPU has no driver.
std::vector<std::size_t> MeasuringGroups::left() const {
  std::vector<std::size_t> computing;
  std::vector<std::size_t> others;
  bool has_one_ended = false;
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    const auto& life = groups_.life(i);
    has_one_ended = has_one_ended || (computes(life) && lives_[i].ended > 0);
    if (!may_serve(life) || lives_[i].ended >= kLivesMost) continue;
    (computes(life) ? computing : others).push_back(i);
  }
  return computing.empty() && !has_one_ended ? others : computing;
}

// One that is ended is waited for, unless a call into its driver may hold it for hours.
bool MeasuringGroups::does_one_measure() const {
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    const auto& life = groups_.life(i);
    if (life.is_probing && !life.is_stuck && !life.is_given_up) return true;
  }
  return false;
}

// One at a time, also when an earlier group greets while a later one measures already.
std::optional<std::size_t> MeasuringGroups::next() const {
  std::optional<std::size_t> best;
  if (does_one_measure()) return best;
  for (const auto group : left()) {
    if (!groups_.life(group).is_serving()) continue;
    if (!best || is_before(group, *best)) best = group;
  }
  return best;
}

bool MeasuringGroups::is_before(std::size_t one, std::size_t other) const {
  if (lives_[one].ended != lives_[other].ended) return lives_[one].ended < lives_[other].ended;
  const auto is_of_kind = [this](std::size_t group) {
    return kind_ && groups_.life(group).leader().kind == *kind_;
  };
  return is_of_kind(one) && !is_of_kind(other);
}

std::string MeasuringGroups::on_asked(std::size_t group) {
  if (!kind_) kind_ = groups_.life(group).leader().kind;
  const auto before = std::exchange(asked_, group);
  if (!before || *before == group) return "";
  const auto& life = groups_.life(*before);
  return fmt::format("precisions are measured here, as the worker on {} {}", life.name,
                     life.is_stuck ? "does not end" : "ended");
}

void MeasuringGroups::note_ends() {
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    const auto& life = groups_.life(i);
    const auto ended = ended_lives(life) - lives_[i].ended_before;
    if (ended > lives_[i].ended) last_end_ = fmt::format("{}: {}", life.name, life.reason);
    lives_[i].ended = ended;
  }
}

}  // namespace muster
