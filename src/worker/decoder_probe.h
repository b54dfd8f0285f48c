#pragma once

#include "base/result.h"
#include "spec/device.h"
#include "wire/generation_messages.h"

namespace muster {

/// Measures a decoder in each precision, one after another: loaded, measured and freed before the
/// next, so that never two are in memory. Runs on the calling thread, which becomes its lane, and a
/// helper for each further core.
///
/// - Speed: the median of single steps of one stream from position 0 on, which are at least 5, and
///   more for 0.3 s, but at most 64.
/// - Divergence (engine/sampling/divergence.h): in the mean over all positions of the texts, from
///   the logits of the first precision, which are kept meanwhile: ids x vocabulary x 4 bytes.
///
/// Keys and values are kept as each precision does by itself: fp32's in float32, which is what all
/// are compared with.
///
/// A precision but the first that cannot be loaded, or whose logits are no numbers, is left out.
/// Errors: those of loading the first one; Internal (its logits are no numbers, and others are to
/// be compared with them: a damaged file); InvalidArgument (an id outside of the vocabulary, a text
/// longer than the model's context).
Result<DecoderVerdict> measure_decoder(const ProbeDecoder& probe, DeviceKind device);

}  // namespace muster
