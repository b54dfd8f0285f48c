// A worker's loop without an engine: it plans, lets virtual time pass, and says what is to be said.

#include "simulator/simulated_decoder_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace muster {

SimulatedDecoderWorker::SimulatedDecoderWorker(const StepWorld& world,
                                               const SimulatedSpeech& speech,
                                               StepChecks::Violated violated)
    : world_(world),
      speech_(speech),
      violated_(std::move(violated)),
      planner_(world.make_planner(world.steps)),
      checks_(world.steps, violated_) {}

void SimulatedDecoderWorker::add(SequenceId id, Generate request) {
  StepRequest asked{.ids = std::move(request.ids),
                    .token_limit = request.token_limit,
                    .prefix_scope = request.prefix_scope,
                    .score_from = request.score_from};
  checks_.on_added(id, asked, speech_.choice_count(id));
  begun_.emplace(id, false);
  const auto added = planner_->add(id, std::move(asked));
  if (added) return;
  violated_(fmt::format("sequence {} is refused: {}", id, added.error().message));
  checks_.on_removed(id);
  begun_.erase(id);
}

void SimulatedDecoderWorker::remove(SequenceId id) {
  planner_->remove(id);
  checks_.on_removed(id);
  begun_.erase(id);
}

std::optional<Duration> SimulatedDecoderWorker::begin_step() {
  parts_ = planner_->next();
  checks_.on_planned(planner_->state(), parts_);
  // The checks have told of one that is not in; it cannot be followed.
  std::erase_if(parts_, [this](const StepPart& part) { return !begun_.contains(part.sequence); });
  if (parts_.empty()) return std::nullopt;
  ++done_.step_count;
  done_.step_token_room += world_.steps.step_tokens_most;
  for (const auto& part : parts_) done_.step_token_count += part.count;
  const auto time = cost();
  done_.busy_seconds += seconds(time);
  return time;
}

Duration SimulatedDecoderWorker::cost() const {
  const auto& costs = world_.costs;
  double time = costs.fixed;
  for (const auto& part : parts_) {
    time += costs.token * part.count + costs.cached_token * part.begin;
    if (part.wants_logits) time += costs.logits;
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(time));
}

SimulatedDecoderWorker::Outcome SimulatedDecoderWorker::end_step() {
  planner_->complete();
  checks_.on_completed(planner_->state(), parts_);
  Outcome outcome;
  for (const auto& part : parts_) {
    if (std::exchange(begun_.at(part.sequence), true)) continue;
    done_.prompt_token_count += planner_->state().ids(part.sequence).size();
    done_.cached_token_count += part.begin;
    outcome.told.begun.push_back({.sequence = part.sequence, .cached_count = part.begin});
  }
  for (const auto& part : parts_) {
    const bool is_in = begun_.contains(part.sequence);
    if (part.wants_logits && is_in) choose(part.sequence, outcome);
  }
  parts_.clear();
  return outcome;
}

void SimulatedDecoderWorker::choose(SequenceId id, Outcome& outcome) {
  const auto token = speech_.choose(id, planner_->state().ids(id).size());
  checks_.on_chosen(id, token);
  if (!token) {
    outcome.finished.emplace_back(id, FinishReason::Stop);
    return remove(id);
  }
  outcome.told.tokens.push_back({.sequence = id, .token = *token});
  if (planner_->append(id, *token)) return;
  outcome.finished.emplace_back(id, FinishReason::Length);
  remove(id);
}

void SimulatedDecoderWorker::end(StepWorldResult& result) {
  checks_.on_end(planner_->state());
  result.busy_seconds += done_.busy_seconds;
  result.step_count += done_.step_count;
  result.step_token_count += done_.step_token_count;
  result.step_token_room += done_.step_token_room;
  result.prompt_token_count += done_.prompt_token_count;
  result.cached_token_count += done_.cached_token_count;
  result.preemption_count += planner_->state().preemption_count();
  result.wait_share_most = std::max(result.wait_share_most, checks_.wait_share_most());
}

}  // namespace muster
