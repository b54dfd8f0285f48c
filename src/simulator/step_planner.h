#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scheduler/steps.h"

namespace muster {

/// Who decides what a simulated step computes: the scheduler that serves, or one with a fault, to
/// see that the checks find it.
///
/// Threads: owned by one.
class StepPlanner {
 public:
  virtual ~StepPlanner() = default;

  // As StepScheduler's.
  virtual Status add(SequenceId id, StepRequest request) = 0;
  virtual const std::vector<StepPart>& next() = 0;
  virtual void complete() = 0;
  virtual bool append(SequenceId id, std::uint32_t token) = 0;
  virtual void remove(SequenceId id) = 0;

  /// Who holds what, and what is known of each sequence that is in.
  virtual const StepScheduler& state() const = 0;
};

/// The scheduler that serves, as it is.
class ServingStepPlanner : public StepPlanner {
 public:
  explicit ServingStepPlanner(const StepOptions& options) : steps_(options) {}

  Status add(SequenceId id, StepRequest request) override {
    return steps_.add(id, std::move(request));
  }
  const std::vector<StepPart>& next() override { return steps_.next(); }
  void complete() override { steps_.complete(); }
  bool append(SequenceId id, std::uint32_t token) override { return steps_.append(id, token); }
  void remove(SequenceId id) override { steps_.remove(id); }
  const StepScheduler& state() const override { return steps_; }

 private:
  StepScheduler steps_;
};

using MakeStepPlanner = std::function<std::unique_ptr<StepPlanner>(const StepOptions&)>;

/// A ServingStepPlanner.
inline std::unique_ptr<StepPlanner> make_step_planner(const StepOptions& options) {
  return std::make_unique<ServingStepPlanner>(options);
}

}  // namespace muster
