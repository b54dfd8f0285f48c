#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/decoder_text.h"
#include "chat/template_variables.h"
#include "tokenizer/tokenizer.h"

namespace muster {

/// How prompts are put to a decoder.
struct PromptForm {
  bool is_raw = false;                // as they are, without the model's chat template
  std::optional<std::string> system;  // what the template is told before the prompt
  std::int64_t now_unix = 0;          // seconds, for templates that show the date
  TemplateVariables template_variables = {};
};

/// Turns prompts into the ids that a decoder continues.
///
/// Threads: not thread-safe (it owns the tokenizer's scratch).
class PromptEncoder {
 public:
  /// text: outlives it.
  ///
  /// Errors: NotFound for a model without a chat template, unless prompts are raw; those of
  /// ChatTemplate::parse.
  static Result<PromptEncoder> make(const DecoderText& text, PromptForm form);

  /// The ids of a prompt in UTF-8. Of one that is longer than `length_most` only the beginning is
  /// read: so many ids stand for all that are longer.
  ///
  /// Errors: InvalidArgument (nothing to continue, the template's own refusal), and those of
  /// ChatTemplate::render.
  Result<std::vector<TokenId>> encode(std::string_view prompt, std::uint32_t length_most);

  /// The same of a conversation, as the JSON of its messages; `system` goes before one that does
  /// not begin with its own.
  ///
  /// Errors: those of above and of parse_chat_messages; InvalidArgument where prompts are raw.
  Result<std::vector<TokenId>> encode_messages(std::string_view json, std::uint32_t length_most);

 private:
  PromptEncoder(const DecoderText& text, PromptForm form,
                std::optional<ChatTemplate> chat_template);
  Result<std::vector<TokenId>> encode_turns(ChatValue messages, std::uint32_t length_most);

  const DecoderText* text_;
  PromptForm form_;
  std::optional<ChatTemplate> template_;  // nullopt: raw
  std::unique_ptr<Tokenizer::Scratch, void (*)(Tokenizer::Scratch*)> scratch_;
};

/// InvalidArgument, for a prompt that leaves a context of `length_max` tokens no room for a reply.
Error prompt_too_long(std::uint32_t length_max);

/// Whether a chat template of the model asks for the date.
bool shows_date(const DecoderText& text);

}  // namespace muster
