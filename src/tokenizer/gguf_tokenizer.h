#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/gguf_tokens.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// The tokenizer that a GGUF file's metadata describes, with the ids that llama.cpp gives.
///
/// Special tokens (control and user-defined ones) are found in the text as Tokenizer finds the
/// added tokens of a tokenizer.json. `encode` adds BOS and EOS as the file says (add_bos_token,
/// add_eos_token, else the default of its model).
/// Errors: Unsupported for a tokenizer model ("bert", "t5", "rwkv") or pre-tokenizer that is not
/// known, by name with the nearest known one; Corrupt for a merge or list that does not fit.
/// Source: llama.cpp, llama-vocab.cpp (llm_tokenizer_bpe, llm_tokenizer_spm).
Result<std::unique_ptr<const Tokenizer>> make_gguf_tokenizer(const GgufTokens& tokens);

/// The names of pre-tokenizers that are known, sorted.
std::vector<std::string_view> known_gguf_pre_tokenizers();

}  // namespace muster
