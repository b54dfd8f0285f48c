#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// Answers a JSON list of module trees to be placed, or an object with that list as "cases":
///
///   {"tree": {"class": C, "params": [[NAME, [SHAPE...], DTYPE]...], "buffers": [...],
///             "children": [[NAME, TREE]...]},
///    "max_memory": [[PLACE, BYTES]...] or {PLACE: BYTES}, "strategy": "auto",
///    "ties": [[NAME...]...], "no_split": [CLASS...], "dtype": "float16",
///    "special_dtypes": {NAME: DTYPE}, "offload_buffers": false, "fallback": false}
///
/// `tree` and `max_memory` must be there. BYTES is a number or a text ("10GB"), read by
/// accelerate's rules under `is_accelerate` and by muster's otherwise. Strategy "custom" takes the
/// map as "device_map". What else an answer has ("balanced_memory", "buffer_warning", "error",
/// "total") may stand in a case and is not read, so a file of cases with answers is a file of
/// cases.
///
/// The answer is a list in the same order: {"balanced_memory": [[PLACE, BYTES]...], "device_map":
/// {NAME: PLACE}, "buffer_warning": BOOL}.
///
/// Errors: InvalidArgument, ResourceExhausted; the message begins with the case's index and field.
Result<std::string> answer_module_cases(std::string_view text, bool is_accelerate);

}  // namespace muster
