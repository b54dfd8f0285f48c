#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/model_weights.h"

namespace muster {

/// Finds what MODEL names for a description: a `.gguf` file, a bare `config.json` (any `.json`), or
/// what `find_model` finds: a folder, or a hub id in the local cache.
///
/// Errors: NotFound, as `find_model`; Unsupported for a PyTorch archive (`.bin`, `.pt`, `.pth`,
/// `.ckpt`); InvalidArgument for a single `.safetensors` (its folder is the model) or another file.
Result<std::filesystem::path> find_model_source(std::string_view model);

/// Describes the model of a folder in Hugging Face layout, of a `.gguf` file, or of a `config.json`
/// alone; no weight is read, only the files' headers.
///
/// A folder without any weights is described by its config alone (WeightSource::Config): the
/// tensors that transformers would create and load, in the config's dtype, or float32 where it
/// states none. Tensors that transformers leaves out on load (position ids, the extra layers of
/// DeepSeek's multi-token prediction) count as stored: those of a block with it, the rest with the
/// head. Errors: NotFound (no config.json, a missing shard or index, by name), Corrupt (a file
/// breaks its format, or files of two models), InvalidArgument (a missing or impossible field, by
/// name), Unsupported (an unknown family, with the nearest known one; PyTorch archives; quantised
/// weights without their files). Source: transformers 5.17, configuration_*.py and modeling_*.py.
Result<ModelDescription> describe_model(const std::filesystem::path& source);

/// Describes a model by the text of its `config.json` alone. Threads: pure.
Result<ModelDescription> describe_config(std::string_view config_text);

/// Describes a model by the text of its `config.json` and the tensors of its weight files.
/// Threads: pure.
Result<ModelDescription> describe_tensors(std::string_view config_text,
                                          std::vector<WeightTensor> tensors);

}  // namespace muster
