#pragma once

#include <filesystem>

#include "base/result.h"

namespace muster {

/// Writes a decoder that is small enough for any test: GGUF, Llama, two layers of width 64 in F32
/// (0.4 MB), 1,024 positions, a byte-level tokenizer and a chat template. Its weights are random,
/// the same on every machine; what it says is printable ASCII without sense, and a greedy reply
/// ends at its limit alone.
///
/// Errors: Io.
Status write_tiny_decoder(const std::filesystem::path& path);

}  // namespace muster
