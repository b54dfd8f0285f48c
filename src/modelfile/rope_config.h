#pragma once

#include <cstdint>

#include "base/result.h"
#include "modelfile/json_fields.h"
#include "modelfile/transformer_config.h"
#include "spec/rope.h"

namespace muster {

/// How positions turn queries and keys, from `rope_parameters`, or from `rope_theta`,
/// `rope_scaling` and their like in configs written before transformers 5.
///
/// Errors: Unsupported (another kind of scaling, by name; parameters for each kind of layer that
/// differ), InvalidArgument (a missing or impossible field, by name).
/// Source: transformers 5.17, modeling_rope_utils.py, `convert_rope_params_to_dict` and
/// `standardize_rope_params`; configuration_phi3.py and configuration_gpt_neox.py.
Result<RopeSpec> parse_rope(const JsonFields& config, ModelFamily family, std::uint32_t head_size,
                            std::uint32_t length_max);

}  // namespace muster
