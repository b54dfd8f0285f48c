#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"
#include "terminal/terminal_info.h"

namespace muster {

/// A stage of one or more copies that differ in their devices alone.
struct StageRow {
  const PlannedStage* stage = nullptr;
  std::vector<std::uint32_t> devices;
  std::uint32_t copy_count = 0;
};

/// The stages of a plan, those of equal copies as one. The plan must outlive them.
std::vector<StageRow> stage_rows(const Plan& plan);

/// "cuda:0-3", "cpu (host)", "disk".
std::string place_text(const Machine& machine, const StageRow& row);

/// The table of places: what each holds of the model, and of what its memory is full. Fits the
/// terminal.
std::string places_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                        const TerminalInfo& terminal);

}  // namespace muster
