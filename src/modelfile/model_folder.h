#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "spec/encoder_spec.h"

namespace muster {

/// A folder in Hugging Face layout, read and checked; no weight is touched.
struct ModelFolder {
  std::filesystem::path path;
  std::string name;  // the hub id or the folder's last name, for people
  EncoderSpec encoder;
  SentenceSpec sentence;
  std::optional<RerankSpec> rerank;  // of a cross-encoder
};

/// What a model is looked for to do. It decides nothing but how a missing one is to be fetched.
enum class ModelUse : std::uint8_t { Embed, Generate };

/// Finds MODEL: an existing folder, else a hub id ("org/name", or "name" alone for
/// sentence-transformers' and those of the catalogue) in the local hub cache (`hub_cache`), newest
/// snapshot of `refs/main`. Nothing is downloaded.
///
/// Errors: NotFound, naming the places looked at, the nearest name that is there, and the command
/// that fetches a model.
Result<std::filesystem::path> find_model(std::string_view model, ModelUse use = ModelUse::Embed);

/// Reads config.json, modules.json, 1_Pooling/config.json, sentence_bert_config.json and
/// config_sentence_transformers.json of the folder.
///
/// A folder whose `architectures` is `...ForSequenceClassification`, and whose modules.json, if
/// there is one, holds no pooling, is a cross-encoder too. Its head's weights are looked for when
/// they are loaded.
///
/// Without modules.json the pooling is the mean over tokens and the vector is not normalised
/// (sentence-transformers' default for a bare encoder).
/// Errors: NotFound (no folder or config.json), Corrupt (broken JSON), InvalidArgument (a missing
/// or impossible field, by name), Unsupported (another family, activation, module or pooling, by
/// name).
Result<ModelFolder> read_model_folder(const std::filesystem::path& folder);

/// The tokens that a text is cut to by the files of an encoder's folder: sentence-transformers'
/// length file, else tokenizer_config.json, at most the `positions` of its table.
///
/// Errors: Corrupt and InvalidArgument, as `parse_length_config`.
/// Source: sentence-transformers 6.0.1, base/modules/transformer.py.
Result<std::uint32_t> read_text_length(const std::filesystem::path& folder,
                                       std::uint32_t positions);

/// XXH3-128 over config, tokenizer and sentence files and all weight bytes: the model's identity in
/// an equality class, a cache key and a journal.
Result<std::string> model_hash(const std::filesystem::path& folder);

}  // namespace muster
