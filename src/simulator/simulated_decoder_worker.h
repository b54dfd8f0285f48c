#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "scheduler/steps.h"
#include "simulator/step_checks.h"
#include "simulator/step_simulation.h"
#include "spec/generation.h"
#include "wire/generation_messages.h"

namespace muster {

/// What a simulated reply says.
struct SimulatedSpeech {
  /// The token of a sequence at a position; nullopt: one that ends the reply.
  std::function<std::optional<std::uint32_t>(SequenceId, std::size_t position)> choose;
  /// How often a token is chosen for it, an end by itself counted.
  std::function<std::uint32_t(SequenceId)> choice_count;
};

/// A worker that generates in virtual time. It does what `worker/generation.h` does, where the
/// engine is a formula of time and the sampler knows what is to be said. Its checks look at each
/// step.
///
/// Threads: owned by one.
class SimulatedDecoderWorker {
 public:
  /// What a step has come to.
  struct Outcome {
    Tokens told = {};
    std::vector<std::pair<SequenceId, FinishReason>> finished = {};
  };

  /// world, speech: outlive it.
  SimulatedDecoderWorker(const StepWorld& world, const SimulatedSpeech& speech,
                         StepChecks::Violated violated);

  /// Between two steps, as `remove` and `begin_step`.
  void add(SequenceId id, Generate request);
  void remove(SequenceId id);

  bool is_idle() const { return begun_.empty(); }
  bool is_in_step() const { return !parts_.empty(); }

  /// How long the step takes; nullopt: nothing is computed, though something should be.
  std::optional<Duration> begin_step();
  Outcome end_step();

  /// Nothing comes any more. Adds what it has done to the result.
  void end(StepWorldResult& result);

 private:
  Duration cost() const;
  void choose(SequenceId id, Outcome& outcome);

  const StepWorld& world_;
  const SimulatedSpeech& speech_;
  const StepChecks::Violated violated_;
  std::unique_ptr<StepPlanner> planner_;
  StepChecks checks_;
  std::map<SequenceId, bool> begun_;  // of those that are in: that it has is told
  std::vector<StepPart> parts_;       // of the step that is computed
  StepWorldResult done_;              // what of it is a worker's
};

}  // namespace muster
