#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// What a token of a GGUF file is for. Source: llama.h, `llama_token_type`.
enum class GgufTokenType : std::uint8_t {
  Undefined,
  Normal,
  Unknown,
  Control,      // special: found in a template's text, left out of a reply's
  UserDefined,  // found in any text
  Unused,
  Byte,  // "<0x0A>" of SentencePiece
};

/// The tokenizer of a GGUF file as its metadata states it (`tokenizer.ggml.*`).
///
/// The views are valid as long as the GgufFile that they were read from.
struct GgufTokens {
  std::string model;                     // "gpt2" (byte-level BPE), "llama"
  std::string pre;                       // the pre-tokenizer's name: "llama-bpe"
  std::vector<std::string_view> tokens;  // by id
  std::vector<float> scores;             // empty, or one a token
  std::vector<GgufTokenType> types;      // empty, or one a token
  std::vector<std::string_view> merges;  // "left right", by rank
  std::optional<std::uint32_t> bos_id;
  std::optional<std::uint32_t> eos_id;
  std::optional<std::uint32_t> eot_id;  // end of a turn
  std::optional<std::uint32_t> eom_id;  // end of a message
  std::optional<std::uint32_t> unknown_id;
  std::optional<std::uint32_t> padding_id;
  std::optional<bool> adds_bos;
  std::optional<bool> adds_eos;
  std::optional<bool> adds_space_prefix;
  std::optional<bool> removes_extra_spaces;
  std::vector<std::uint32_t> stop_ids;  // ascending: all ids that end a reply
  std::string_view chat_template;       // `tokenizer.chat_template`; empty: none
};

}  // namespace muster
