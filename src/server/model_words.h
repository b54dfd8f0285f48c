#pragma once

#include <string_view>

#include "spec/encoder_spec.h"
#include "spec/generation.h"
#include "spec/precision.h"

namespace muster {

/// "float32", "bfloat16", "float16", as torch and TEI have it.
std::string_view dtype_word(Precision precision);

/// "F32", "BF16", "F16", as GGUF and Ollama have it; "I8", GGUF's word for numbers of 8 bits, for
/// int8.
std::string_view quantization_word(Precision precision);
/// Empty for a model in its file's own numbers.
std::string_view quantization_word(DecoderPrecision precision);

/// "bert", "roberta", "distilbert", "mpnet".
std::string_view family_word(EncoderFamily family);

}  // namespace muster
