#pragma once

#include "base/result.h"
#include "engine/encoder.h"
#include "wire/messages.h"

namespace muster {

/// What `muster-worker` needs to load an encoder: the request, with the folder's own dimensions.
///
/// Errors: those of reading the model folder.
Result<engine::EncoderOptions> encoder_options(const ModelRequest& model, Precision precision);

/// Measures every precision that the device may use on the calling thread: speed as the median of
/// interleaved rounds, and the cosine of each text's vector to fp32's.
///
/// Errors: those of loading the model in fp32; a lower precision that cannot be loaded is left out.
Result<ProbeVerdict> measure_precisions(const Probe& probe);

}  // namespace muster
