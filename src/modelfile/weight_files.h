#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster {

/// The names of the weight files of a folder, sorted: `model.safetensors`, or the shards that
/// `model.safetensors.index.json` names.
///
/// Errors: NotFound (names the PyTorch archive or other file when only that is there), Corrupt (a
/// broken index).
Result<std::vector<std::string>> weight_files(const std::filesystem::path& folder);

/// Whether the folder holds nothing that could be weights: no safetensors, no index, no archive.
bool has_no_weights(const std::filesystem::path& folder);

/// Whether the name is that of a PyTorch archive of weights: `.bin`, `.pt`, `.pth`, `.ckpt`.
bool is_pytorch_archive(std::string_view file_name);

/// The shard names of an index, sorted, each once.
///
/// Errors: Corrupt (no `weight_map` of strings, a name that is a path).
Result<std::vector<std::string>> parse_weight_index(std::string_view text);

/// Tensor to shard. Errors: as `parse_weight_index`.
Result<std::map<std::string, std::string>> parse_weight_map(std::string_view text);

}  // namespace muster
