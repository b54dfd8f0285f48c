#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "engine/decoder/decoder.h"
#include "scheduler/steps.h"
#include "spec/device.h"
#include "wire/generation_messages.h"

namespace muster {

/// A decoder and the steps that it has room for.
struct LoadedDecoder {
  std::unique_ptr<engine::Decoder> decoder;
  StepOptions steps;
};

/// Loads what the parent asks for and makes the calling thread its lane; on a CPU a helper for each
/// further core is pinned to it.
///
/// layers_most: only so many layers, from the first on; 0: all.
/// Errors: those of the model's files and of `engine::Decoder::load`.
Result<LoadedDecoder> load_decoder(const LoadDecoder& load, DeviceKind device,
                                   std::size_t layers_most = 0);

/// Threads that compute it: one for each core; a GPU needs one, which gives it work.
std::size_t decoder_thread_count(const LoadDecoder& load, DeviceKind device);

}  // namespace muster
