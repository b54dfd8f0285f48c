#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/value.h"

namespace muster {

/// What a chat template is told beside the conversation, by name: `enable_thinking`. vLLM,
/// llama.cpp and transformers call them `chat_template_kwargs`.
using TemplateVariables = ChatValue::Map;

/// Far above what any published template knows. Values are many times as large in memory as their
/// text, and a template looks names up one by one.
inline constexpr std::size_t kTemplateVariablesMost = 64;
inline constexpr std::size_t kTemplateVariablesBytesMost = std::size_t{64} << 10U;  // as JSON

/// Reads them as a JSON object.
///
/// Errors: InvalidArgument (no object; a name that is set by the rendering itself, such as
/// `messages`; more or longer than the limits above), and those of ChatValue::parse.
Result<TemplateVariables> parse_template_variables(std::string_view json);

/// Some that were read so, as JSON on one line.
std::string template_variables_json(const TemplateVariables& variables);

}  // namespace muster
