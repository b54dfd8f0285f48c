#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"
#include "planner/forms/plan_files.h"

namespace muster {

/// Whether a plan may be written over what is at `out`: nothing, an empty file, no file but a
/// device or a pipe, or an earlier plan in the same form, which is known by its content.
///
/// form: its name, for the message.
/// Errors: InvalidArgument, naming `out`; those of reading it.
Status check_plan_output(const std::filesystem::path& out, PlanFormat format,
                         std::string_view form);

}  // namespace muster
