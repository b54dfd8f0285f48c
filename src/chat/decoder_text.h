#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// A template by its name; "default" is the usual one.
struct NamedChatTemplate {
  std::string name;
  std::string text;
};

/// The text side of a decoder: everything between a conversation and ids, as its files say.
///
/// Threads: immutable.
struct DecoderText {
  std::unique_ptr<const Tokenizer> tokenizer;
  std::vector<NamedChatTemplate> templates;  // in the files' order; empty: the model has none
  std::string bos_token;                     // texts that templates write; empty: none
  std::string eos_token;
  std::vector<TokenId> stop_ids;  // ascending: each of them ends a reply; empty where the files
                                  // state none and no token is a known end

  /// The template of a name, read. Without a name: "tool_use" where there is one and the
  /// conversation has tools, else "default".
  ///
  /// Errors: NotFound (no template at all, or none of that name, with the names there are), and
  /// those of `ChatTemplate::parse`.
  Result<ChatTemplate> find_template(std::optional<std::string_view> name, bool has_tools) const;
};

/// Reads the text side of a GGUF file, or of a folder in Hugging Face layout: tokenizer.json,
/// tokenizer_config.json (a template, or a list of named ones), chat_template.jinja and
/// additional_chat_templates/NAME.jinja, which go before it, chat_template.json, special tokens,
/// and the stop ids of generation_config.json and config.json.
///
/// Errors: NotFound (no tokenizer in the model), and those of the files, each by its name.
/// Source: transformers 5.17, tokenization_utils_base.py, `from_pretrained`.
Result<DecoderText> load_decoder_text(const std::filesystem::path& source);

/// The ids of a rendered conversation: special tokens in the text are found, and none are added, as
/// templates write their own. Where a template leaves BOS out and the tokenizer would add it,
/// nothing is added either, as in transformers' apply_chat_template.
std::vector<TokenId> encode_rendered(const Tokenizer& tokenizer, std::string_view rendered,
                                     Tokenizer::Scratch& scratch);

}  // namespace muster
