#pragma once

#include <cstddef>
#include <string>

#include "cli/plan_json.h"
#include "planner/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"

namespace muster {

/// A plan for a person: what it is for, a row for each place, why, and what would be better.
/// Copies that differ in their devices alone share their rows. Fits `width` columns.
std::string plan_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                      const PlanVerdict& verdict, bool explain, std::size_t width);

/// "cuda:0-3,6": the names of devices of one kind, runs joined.
std::string device_list(const Machine& machine, const std::vector<std::uint32_t>& devices);

/// `text` broken at spaces into lines of at most `width` columns; lines after the first begin with
/// `indent`.
std::string wrapped(const std::string& text, const std::string& indent, std::size_t width);

}  // namespace muster
