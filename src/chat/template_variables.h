#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/value.h"

namespace muster {

/// What a chat template is told beside the conversation, by name: `enable_thinking`. vLLM,
/// llama.cpp and transformers call them `chat_template_kwargs`.
using TemplateVariables = ChatValue::Map;

/// Reads them as a JSON object.
///
/// Errors: InvalidArgument (no object; a name that is set by the rendering itself, such as
/// `messages`), and those of ChatValue::parse.
Result<TemplateVariables> parse_template_variables(std::string_view json);

/// Some that were read so, as JSON on one line.
std::string template_variables_json(const TemplateVariables& variables);

}  // namespace muster
