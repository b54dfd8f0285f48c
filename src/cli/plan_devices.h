#pragma once

#include <string>

#include "base/result.h"
#include "cli/command.h"

namespace muster {

/// The devices that a command which runs one model is to use, as `--devices` names them: those of
/// `--plan`, else the setting. A flag `--devices` beside a plan must say the same.
///
/// Errors: those of reading the plan and the model; InvalidArgument (a plan of another model, a
/// flag that disagrees); Unsupported (anything but whole copies that embed, by name).
Result<std::string> devices_of_plan(const CommandContext& context, const std::string& model);

}  // namespace muster
