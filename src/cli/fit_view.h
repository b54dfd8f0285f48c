#pragma once

#include <cstddef>
#include <string>

#include "planner/plan/plan.h"
#include "spec/machine.h"
#include "spec/model_weights.h"
#include "terminal/terminal_info.h"

namespace muster {

/// The verdict as the first lines of an answer, in the terminal's width; its words are green,
/// yellow or red where the terminal has colours.
std::string verdict_text(const FitVerdict& verdict, const TerminalInfo& terminal);

/// What `plan` and `estimate` assume: task, sequences and tokens, precision and device, such as
/// "to generate: 1 sequence of 8,192 tokens, weights as stored (BF16), on A10G-24G".
std::string assumption_text(const ModelDescription& model, const Machine& machine, const Plan& plan,
                            std::size_t width);

}  // namespace muster
