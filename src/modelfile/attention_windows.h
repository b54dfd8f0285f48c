#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "modelfile/json_fields.h"
#include "modelfile/transformer_config.h"

namespace muster {

/// Per layer the sliding window in tokens, 0 for full attention: from `layer_types`, else by the
/// family's pattern (`sliding_window_pattern`, `use_sliding_window`, `max_window_layers`).
///
/// Errors: InvalidArgument (a field of the wrong type or size), Unsupported (another kind of layer,
/// by name). Source: transformers 5.17, `__post_init__` in configuration_*.py of each family.
Result<std::vector<std::uint32_t>> parse_windows(const JsonFields& config, ModelFamily family,
                                                 std::uint32_t layers);

}  // namespace muster
