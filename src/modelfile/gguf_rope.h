#pragma once

#include "base/result.h"
#include "modelfile/gguf_file.h"
#include "modelfile/gguf_keys.h"

namespace muster {

/// Fills in the rotary positions of a decoder whose dimensions are known.
///
/// Errors: Corrupt for keys or tensors that are wrong; Unsupported for a scaling that is not
/// computed.
Status read_gguf_rope(const GgufKeys& keys, const GgufFile& file, DecoderSpec& spec);

}  // namespace muster
