#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/decoder.h"
#include "tokenizer/models/model.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/reading/json_fields.h"
#include "tokenizer/split/pre_tokenizer.h"

namespace muster {

/// Everything that a tokenizer.json describes.
struct TokenizerParts {
  std::unique_ptr<const Normalizer> normalizer;       // null: the text stays as it is
  std::unique_ptr<const PreTokenizer> pre_tokenizer;  // null: the text is one word
  std::unique_ptr<const Model> model;
  std::unique_ptr<const Decoder> decoder;  // null: tokens are joined by spaces
  PostProcessor post_processor;
  AddedTokens added_tokens;
};

/// Errors: Corrupt for broken JSON or a missing part, Unsupported for a part that is not
/// implemented, by its name. Source: the serialisation of huggingface/tokenizers 0.23, version
/// "1.0".
Result<TokenizerParts> read_tokenizer_json(std::string_view text);

/// Who writes the bytes of a word in the byte alphabet: the pre-tokenizer, as the file says, or
/// nobody, as the model reads bytes itself, which is quicker and comes to the same.
enum class ByteMapping : bool { Written, LeftToModel };

/// Whether the words leave the pre-tokenizer in the byte alphabet, by its last step and only there.
Result<bool> ends_in_bytes(const JsonObject& pre_tokenizer);

/// Whether the model can read bytes itself in place of the byte alphabet.
Result<bool> can_read_bytes(const JsonObject& model);

Result<std::unique_ptr<const PreTokenizer>> read_pre_tokenizer(const JsonObject& object,
                                                               ByteMapping mapping);
Result<MetaspaceOptions> read_metaspace(const JsonObject& object);
Result<std::unique_ptr<const Normalizer>> read_normalizer(const JsonObject& object);
/// `document`: the whole file that `object` is from.
Result<std::unique_ptr<const Model>> read_model(const JsonObject& object, ByteMapping mapping,
                                                std::string_view document);
Result<std::unique_ptr<const Model>> read_unigram(const JsonObject& model,
                                                  std::string_view document);
Result<PostProcessor> read_post_processor(const JsonObject& object);
Result<std::unique_ptr<const Decoder>> read_decoder(const JsonObject& object);

/// The pattern of a Split or Replace, ready to search with.
Result<Regex> compile_pattern(const JsonPattern& pattern);

}  // namespace muster
