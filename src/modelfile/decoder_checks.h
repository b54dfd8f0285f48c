#pragma once

#include <optional>
#include <string>

#include "spec/decoder_spec.h"

namespace muster {

/// What about a decoder contradicts itself, as one sentence: what DecoderSpec and RopeSpec promise
/// whoever computes with them. nullopt: nothing.
std::optional<std::string> decoder_fault(const DecoderSpec& spec);

}  // namespace muster
