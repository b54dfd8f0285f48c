#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// The names of the weight files of a folder, sorted: `model.safetensors`, or the shards that
/// `model.safetensors.index.json` names.
///
/// Errors: NotFound (names the PyTorch file when only that is there), Corrupt (a broken index).
Result<std::vector<std::string>> weight_files(const std::filesystem::path& folder);

/// The shard names of an index, sorted, each once.
///
/// Errors: Corrupt (no `weight_map` of strings, a name that is a path).
Result<std::vector<std::string>> parse_weight_index(std::string_view text);

}  // namespace muster
