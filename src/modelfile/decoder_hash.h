#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace muster {

/// XXH3-128 over all of a decoder's files that can change a reply: a GGUF file whole, under
/// whatever name; of a folder in Hugging Face's layout configs, tokenizer, chat templates and
/// weights, as far as they are there. Cost: every byte is read once.
///
/// Errors: NotFound (no such GGUF file), Corrupt (a file that is cut shorter meanwhile, a broken
/// index of weights), those of reading.
Result<std::string> decoder_hash(const std::filesystem::path& source);

}  // namespace muster
