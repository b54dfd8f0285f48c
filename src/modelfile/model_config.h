#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/encoder_spec.h"

namespace muster {

/// Reads the dimensions of an encoder from the text of `config.json`.
///
/// Errors: Corrupt (not a JSON object), InvalidArgument (a missing or impossible field, by name),
/// Unsupported (another family, activation or kind of position, by name).
/// Source: transformers 5.17, configuration_{bert,roberta,distilbert,mpnet}.py.
Result<EncoderSpec> parse_encoder_config(std::string_view text);

/// What `modules.json` lists, in the one order we compute: encoder, pooling, normalisation.
struct SentenceModules {
  std::string pooling_folder;  // "1_Pooling"
  bool normalize = false;
};

/// Errors: Corrupt; InvalidArgument (a field of the wrong type); Unsupported (another module or
/// order, by name).
Result<SentenceModules> parse_sentence_modules(std::string_view text);

/// Reads `1_Pooling/config.json` (`file` in messages), old (`pooling_mode_mean_tokens`) or new
/// (`pooling_mode`).
///
/// Errors: Corrupt; InvalidArgument; Unsupported (another pooling, several at once, or a prompt
/// left out of it). Source: sentence-transformers 6.0.1, sentence_transformer/modules/pooling.py.
Result<Pooling> parse_pooling_config(std::string_view file, std::string_view text);

/// `sentence_bert_config.json`, or the same by one of its older names.
struct LengthConfig {
  std::optional<std::uint32_t> length_max;
  bool lowercase = false;
};
Result<LengthConfig> parse_length_config(std::string_view file, std::string_view text);

/// `model_max_length` of `tokenizer_config.json`; nullopt where it is missing or transformers'
/// "no limit" (1e30).
Result<std::optional<std::uint32_t>> parse_tokenizer_length(std::string_view text);

/// `config_sentence_transformers.json`: the prompts and which one is the default.
struct PromptConfig {
  std::vector<NamedPrompt> prompts;
  std::optional<std::string> default_prompt;
};
/// Errors: Corrupt; InvalidArgument (a prompt that is no string, a default that is not listed).
Result<PromptConfig> parse_prompt_config(std::string_view text);

}  // namespace muster
