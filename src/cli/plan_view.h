#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "planner/forms/plan_json.h"
#include "planner/plan/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"
#include "terminal/table.h"
#include "terminal/terminal_info.h"

namespace muster {

/// A plan for a person: whether it fits, what it is for, a row for each place, why, and what would
/// be better. Copies that differ in their devices alone share their rows. Fits the terminal.
std::string plan_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                      const PlanVerdict& verdict, bool explain, const TerminalInfo& terminal);

/// The machine in a sentence: "this machine" where it is "here", else its name.
std::string machine_words(const Machine& machine);

/// "cuda:0-3,6": the names of devices of one kind, runs joined.
std::string device_list(const Machine& machine, const std::vector<std::uint32_t>& devices);

/// The first table that `width` columns hold uncut, else the last one, cut. At least one.
std::string render_first_fitting(std::span<const Table> tables, const TerminalInfo& terminal);

}  // namespace muster
