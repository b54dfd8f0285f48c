#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "spec/decoder_spec.h"

namespace muster {

/// Reads what a decoder computes with from the text of a `config.json`.
///
/// `generation_config`: the text of generation_config.json where the folder has one; its
/// eos_token_id (a number or a list) then stands for the config's own, as in transformers.
/// Errors: as `parse_transformer_config`; Unsupported, by name, for a family that cannot be
/// computed (with the known ones), an activation, a kind of RoPE scaling, or an option that changes
/// the result and is not implemented. Threads: pure. Source: transformers 5.17, configuration_*.py
/// and modeling_*.py of each family.
Result<DecoderSpec> parse_decoder_config(std::string_view config,
                                         std::optional<std::string_view> generation_config);

/// The decoder of a folder in Hugging Face layout, or of a `.gguf` file.
///
/// Errors: NotFound (no config.json), and those of `parse_decoder_config` and `GgufFile::decoder`,
/// with the file's name before them.
Result<DecoderSpec> read_decoder_spec(const std::filesystem::path& source);

}  // namespace muster
