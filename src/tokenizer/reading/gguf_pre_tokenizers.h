#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/split/pre_tokenizer.h"

namespace muster {

/// What the name of a pre-tokenizer in a GGUF file (`tokenizer.ggml.pre`) stands for.
struct GgufPreTokenizer {
  std::unique_ptr<const PreTokenizer> steps;
  bool ignores_merges = false;  // a word that is a token is taken whole
  bool adds_bos = false;        // unless the file says otherwise
};

/// Finds a pre-tokenizer by its name; an empty name, of old files, is "default".
///
/// The patterns are those of the models' own tokenizer.json. llama.cpp replaces some of their
/// Unicode classes by approximations (of upper and lower case in "tekken" and "gpt-4o"), so its ids
/// may differ there for text beyond ASCII; a model was trained with the former.
/// Errors: Unsupported for a name that is not known, with the nearest known one.
/// Source: llama-vocab.cpp of llama.cpp (llama-cpp-python 0.3.36), llm_tokenizer_bpe and load().
Result<GgufPreTokenizer> find_gguf_pre_tokenizer(std::string_view name);

}  // namespace muster
