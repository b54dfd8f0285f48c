#pragma once

#include "base/result.h"
#include "cli/command.h"

namespace muster {

/// `muster generate --prompts`: the run, its bar and its report. The value is the exit code.
Result<int> run_generate_prompts(const CommandContext& context);

}  // namespace muster
