#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "spec/encoder_spec.h"

namespace muster {

/// The classification head that `config.json` states: how many labels, and the activation that
/// sentence-transformers left there, else the sigmoid for one label and the identity for more.
/// Nullopt where `architectures` names no `...ForSequenceClassification`. Length and segments are
/// other files' matter.
///
/// Errors: Corrupt; InvalidArgument (a field of the wrong type, no labels); Unsupported (another
/// activation of torch, by name).
/// Source: sentence-transformers 6.0.1, cross_encoder/model.py, `get_default_activation_fn`;
/// transformers 5.17, configuration_utils.py (without `id2label` there are two labels).
Result<std::optional<RerankSpec>> parse_rerank_config(std::string_view text);

/// `activation_fn` of `config_sentence_transformers.json`, which goes before that of `config.json`.
///
/// Errors: as above.
Result<std::optional<ScoreActivation>> parse_score_activation(std::string_view text);

/// Whether the tokenizer of `tokenizer_config.json` tells a pair's second text apart: as
/// `model_input_names` says, else as its class does.
///
/// Errors: Corrupt; InvalidArgument (a field of the wrong type).
/// Source: transformers 5.17: BertTokenizer alone of our families' names `token_type_ids`.
Result<bool> parse_segment_use(std::string_view text, EncoderFamily family);

/// Whether `modules.json` is that of a cross-encoder: a Transformer in the folder itself, no more.
///
/// Errors: Corrupt; InvalidArgument.
Result<bool> is_cross_encoder(std::string_view modules);

}  // namespace muster
