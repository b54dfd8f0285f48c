#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/models/encoder_model.h"
#include "engine/models/encoder_weights.h"

namespace muster::engine {

/// Opens libtorch_cuda.so, once; torch registers its CUDA operators while it loads.
///
/// Errors: Unsupported, with the reason: no such library, or no device.
Status open_cuda();

/// The visible device's model and CUDA's version: its part of the equality class; "none" without
/// one.
std::string cuda_class();

/// An encoder on the one CUDA device that the process sees.
///
/// Texts are padded to a few lengths, and each pass computes a fixed number of rows, so that a row
/// is computed by the same kernels whatever else is in the batch.
Result<std::unique_ptr<EncoderModel>> make_cuda_encoder(const EncoderSpec& encoder,
                                                        const EncoderWeights& weights,
                                                        Precision precision);

}  // namespace muster::engine
