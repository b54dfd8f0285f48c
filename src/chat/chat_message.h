#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/chat_template.h"
#include "chat/decoder_text.h"
#include "chat/template_variables.h"
#include "chat/value.h"

namespace muster {

/// What somebody has said: a role ("system", "user", "assistant") and a text in UTF-8.
struct ChatMessage {
  std::string role;
  std::string content;

  bool operator==(const ChatMessage&) const = default;
};

/// The messages as a template reads them.
ChatValue chat_value_of(const std::vector<ChatMessage>& messages);

/// Reads the messages of a conversation as OpenAI writes them: a list of objects, each with a
/// `role` and a `content`, which is a text, or a list of parts of the type text, which are joined;
/// it may be null or missing beside `tool_calls`. What else an object has is the template's.
///
/// Errors: InvalidArgument, naming the message: "messages[2] has no role".
Result<ChatValue> parse_chat_messages(std::string_view json);

/// The text of a conversation, with the arguments of its tool calls in the form that the template
/// takes. OpenAI writes them as a text of JSON, and most templates want the object: of a text they
/// would write it in quotes with its own escaped, or fail. Such a template is given the object, as
/// in vLLM and llama.cpp; one that writes a text as it is, gets the text.
///
/// Errors: those of ChatTemplate::render. Cost: three renderings at most, where there are such
/// texts.
Result<std::string> render_conversation(const ChatTemplate& chat_template, const ChatInput& input);

/// What a template of this model is rendered with. messages: a list. now_unix: seconds, for
/// templates that show the date.
ChatInput chat_input_of(ChatValue messages, const DecoderText& text, std::int64_t now_unix,
                        TemplateVariables variables = {});

}  // namespace muster
