#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/hub_listing.h"

namespace muster {

/// The files of a repository that are fetched, smallest first, so that what is wrong shows before
/// the weights.
///
/// Without patterns it is what muster and sentence-transformers read of a model: its configs, the
/// tokenizer's files, the folders of a sentence model, and the weights as safetensors: one file,
/// else an index with its shards. With patterns it is every file that one of them matches, whatever
/// it is: `*` stands for any characters, slashes too, and a pattern that ends in a slash for all
/// below it, as for `hf download --include`.
///
/// model: for the message. Errors: Unsupported for a repository whose only weights are PyTorch
/// archives (unpickling runs code) or GGUF files (one of many is meant), naming them; NotFound for
/// a pattern that matches nothing, naming the nearest file. Threads: pure.
Result<std::vector<HubFile>> choose_files(std::string_view model, const HubListing& listing,
                                          std::span<const std::string> patterns);

}  // namespace muster
