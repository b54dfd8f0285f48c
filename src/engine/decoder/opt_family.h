#pragma once

#include "base/result.h"
#include "engine/decoder/decoder_tensors.h"

namespace muster::engine {

/// OPT: learned positions that begin at row 2, layer norms before each part.
///
/// Errors: also Unsupported for OPT-350m's norms behind the parts and its narrower table.
/// Source: transformers 5.17, modeling_opt.py.
Result<DecoderTensors> opt_tensors(const WeightLoading& loading);

}  // namespace muster::engine
