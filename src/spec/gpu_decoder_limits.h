#pragma once

#include <optional>
#include <string>

#include "spec/decoder_spec.h"

namespace muster {

/// What of a decoder the engine does not compute on a GPU, whatever the precision: "the experts of
/// mixtral are computed on CPUs only". nullopt: it computes all of it. Who plans for a GPU and who
/// loads there read the same.
///
/// Threads: pure. Source: src/engine/decoder/device_decoder.cpp.
std::optional<std::string> not_computed_on_gpu(const DecoderSpec& spec);

}  // namespace muster
