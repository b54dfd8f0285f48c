#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace muster {

/// The file or folder that a decoder's name leads to: a `.gguf` file, a folder in Hugging Face's
/// layout or a name in the local hub cache.
///
/// Errors: InvalidArgument (a file of another kind; a pipe, folder, socket or device of a `.gguf`
/// name), NotFound, and those of `find_model`.
Result<std::filesystem::path> find_decoder_source(const std::string& model);

/// Whether a name leads to a model that generates: a `.gguf` file, there or not, or a folder whose
/// config.json is of a decoder that can be computed. Cost: reads that file.
bool names_decoder(const std::string& model);

}  // namespace muster
